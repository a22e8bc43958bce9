"""Latency: medians with intervals over samples, and whole distributions.

Of a block with more samples than its figures keep, as many quantiles stand for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from kernels.options import CONTRACTED
from orchestrator.analysis.statistics import Summary
from orchestrator.figures import BlockFigures
from orchestrator.model.record import Outcome
from orchestrator.report import wording
from orchestrator.report.colours import Colours, Look, looks
from orchestrator.report.drawing import MUTED, PAGE, Chart, bare, new_figure, style
from orchestrator.report.heading import put_heading

from . import rows as layout
from .rows import Key

MAX_CURVES = 10
"""The most curves of one panel: more are told apart by nobody."""
MAX_TICKS = 300
"""Samples that a row shows, and steps of a curve: of more, so many quantiles."""
APART = withStroke(linewidth=4.5, foreground=PAGE)
"""An outline of the median and its interval, which lie on hundreds of samples of the same colour."""
FEW_SAMPLES = 60
"""The samples up to which a curve shows each of them."""


def latency(summaries: Sequence[Summary], blocks: Sequence[BlockFigures]) -> Chart | None:
    """Median with its interval over every sample, one row a device and cell, grouped by device."""
    with_latency = [summary for summary in summaries if summary.latency][: layout.MAX_ROWS]
    if not with_latency:
        return None
    samples, colours = samples_by_key(blocks), Colours.of(summaries)
    rows = layout.rows_of(with_latency, wording.naming(summaries))
    with style():
        figure = new_figure(layout.WIDTH_PX, rows.height_px)
        axes = figure.subplots()
        for summary, y in zip(with_latency, rows.positions, strict=True):
            _draw(axes, summary, y, samples.get(layout.key_of(summary), []), colours[summary])
        layout.label_rows(axes, rows)
        layout.fit_axis(axes, [v for s in with_latency for v in samples.get(layout.key_of(s), [])])
        axes.set_xlabel(f"latency of one {wording.sample(with_latency)}, ms")
        put_heading(figure, keys=_keys(with_latency, colours))
        return Chart(figure, "latency", "Latency by device and configuration")


def samples_by_key(blocks: Sequence[BlockFigures]) -> dict[Key, list[float]]:
    """Latencies of good blocks, without canaries."""
    samples: dict[Key, list[float]] = {}
    for block in blocks:
        if block.outcome is Outcome.OK and block.role == "work" and not block.stream and block.times:
            samples.setdefault(layout.key_of(block), []).extend(block.times.quantiles_ms)
    return samples


def _draw(axes: Axes, summary: Summary, y: float, samples: list[float], colour: str) -> None:
    assert summary.latency is not None
    samples = layout.thin(sorted(samples), MAX_TICKS)
    axes.plot(samples, [y] * len(samples), "|", color=colour, alpha=0.45, markersize=7, markeredgewidth=1)
    if summary.latency.interval_ms:
        low, high = summary.latency.interval_ms.low, summary.latency.interval_ms.high
        axes.plot([low, high], [y, y], color=colour, linewidth=2.5, solid_capstyle="round", path_effects=[APART])
    face = PAGE if summary.precision.startswith("fp16") else colour
    if summary.latency.median_ms is not None:
        axes.plot(
            [summary.latency.median_ms], [y], "D" if summary.precision in CONTRACTED else "o",
            color=colour, markerfacecolor=face, markersize=6, markeredgewidth=1.5, path_effects=[APART],
        )  # fmt: skip
    of = summary.latency
    axes.annotate(
        wording.figure(of.median_ms, of.interval_ms, of.unresolved)[0], (1.0, y), xytext=(6, 0), va="center",
        xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=8.5,
    )  # fmt: skip


def _keys(rows: Sequence[Summary], colours: Colours) -> list[Line2D]:
    shown = {colours.name(row): colours[row] for row in rows}
    keys = [Line2D([], [], marker="o", linestyle="", color=colour, label=name) for name, colour in shown.items()]
    if any(row.precision.startswith("fp16") for row in rows):
        keys.append(Line2D([], [], marker="o", linestyle="", color=MUTED, markerfacecolor=PAGE, label="hollow: fp16"))
    if any(row.precision in CONTRACTED for row in rows):
        keys.append(Line2D([], [], marker="D", linestyle="", color=MUTED, label="diamond: relaxed or imprecise"))
    keys.append(Line2D([], [], marker="|", linestyle="", color=MUTED, markersize=8, label="one sample"))
    if any(row.latency and row.latency.interval_ms for row in rows):
        keys.append(Line2D([], [], color=MUTED, linewidth=2.5, label=_interval_words(rows)))
    return keys


def _interval_words(rows: Sequence[Summary]) -> str:
    levels = sorted({round(100 * one.level) for row in rows if row.latency and (one := row.latency.interval_ms)})
    return f"{' to '.join(map(str, dict.fromkeys((levels[0], levels[-1]))))} % interval of the median"


def distribution(summaries: Sequence[Summary], blocks: Sequence[BlockFigures]) -> list[Chart]:
    """Draw the share of samples that took at most so long (ECDF): a chart a device and workload, a curve a cell."""
    samples = samples_by_key(blocks)
    found: dict[str, list[Summary]] = {}
    for summary in summaries:
        own = found.setdefault(f"{summary.serial} {summary.source} {summary.workload}", [])
        if len(samples.get(layout.key_of(summary), ())) >= 2 and len(own) < MAX_CURVES:
            own.append(summary)
    shown = list(layout.first_panels({name: own for name, own in found.items() if own}).values())
    names, colours = wording.naming(summaries), Colours.of(summaries)
    curves = [[(colours.name(one), wording.cell(one, names._replace(workload=False))) for one in own] for own in shown]
    same = looks([curve for own in curves for curve in own], colours.known)
    if len(set(same.values())) < len(same):  # too many for one look each: then they differ within a chart only
        same = {}
    charts = []
    for number, (own, named) in enumerate(zip(shown, curves, strict=True)):
        look, where = same or looks(named, colours.known), layout.device_of(own[0])
        title = f"{where} · {own[0].workload}" if names.workload else where
        ordered = [(name, look[of, name], sorted(samples[layout.key_of(one)]))
                   for (of, name), one in zip(named, own, strict=True)]  # fmt: skip
        charts.append(_curves(ordered, title, f"distribution{number}"))
    return charts


def _curves(curves: Sequence[tuple[str, Look, list[float]]], title: str, name: str) -> Chart:
    with style():
        figure = new_figure(layout.PANEL_PX, 205)
        axes = figure.subplots()
        for _, look, ordered in curves:
            _draw_curve(axes, ordered, look)
        _finish(axes, [value for _, _, ordered in curves for value in ordered])
        keys = [Line2D([], [], color=look.color, linestyle=look.linestyle, label=word) for word, look, _ in curves]
        put_heading(figure, title, keys)
        return Chart(figure, name, f"Distribution of latencies: {title}")


def _draw_curve(axes: Axes, ordered: list[float], look: Look) -> None:
    few = len(ordered) <= FEW_SAMPLES
    points = layout.thin([(value, (i + 1) / len(ordered)) for i, value in enumerate(ordered)], MAX_TICKS)
    ordered, shares = [value for value, _ in points], [share for _, share in points]
    axes.step([ordered[0], *ordered], [0.0, *shares], where="post", linewidth=1.5, **look._asdict())
    if few:
        axes.plot(ordered, shares, ".", color=look.color, markersize=3.5)


def _finish(axes: Axes, values: Sequence[float]) -> None:
    axes.set_ylim(0, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 0.9, 1.0], ["0", "25 %", "50 %", "75 %", "90 %", ""])
    layout.fit_axis(axes, values)
    if axes.get_xscale() == "linear":
        margin = 0.06 * (max(values) - min(values)) or 0.05 * max(values)
        axes.set_xlim(min(values) - margin, max(values) + margin)
    axes.set_xlabel("latency, ms")
    bare(axes, grid="both")
