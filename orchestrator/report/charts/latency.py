"""Latency: medians with intervals over raw samples, and whole distributions."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from orchestrator.model.record import Outcome, Record
from orchestrator.report import wording
from orchestrator.report.drawing import MUTED, PAGE, bare, new_figure, style, to_svg
from orchestrator.statistics import Summary, is_stream, timed_ms

from . import rows as layout
from .rows import Key, backend_colour

MAX_CURVES = 10
"""Of one panel: more are told apart by nobody."""
MAX_TICKS = 300
"""Samples that a row shows, and steps of a curve: of more, so many quantiles."""
FEW_SAMPLES = 60
"""Up to so many samples a curve shows each of them."""


def latency(summaries: Sequence[Summary], records: Sequence[Record]) -> str | None:
    """Median with its interval over every raw sample, one row a device and cell, grouped by device."""
    rows = [summary for summary in summaries if summary.latency][: layout.MAX_ROWS]
    if not rows:
        return None
    samples = samples_by_key(records)
    with style():
        figure = new_figure(layout.WIDTH_PX, 70 + layout.height_px(rows))
        axes = figure.subplots()
        positions = layout.positions_of(rows)
        for summary, y in zip(rows, positions, strict=True):
            _draw(axes, summary, y, samples.get(layout.key_of(summary), []))
        layout.label_rows(axes, rows, positions, names=wording.naming(summaries))
        layout.fit_axis(axes, [v for s in rows for v in samples.get(layout.key_of(s), [])])
        axes.set_xlabel("latency of one inference, ms")
        axes.legend(handles=_keys(rows), loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=6)
        return to_svg(figure, "latency", "Latency by device and cell")


def samples_by_key(records: Sequence[Record]) -> dict[Key, list[float]]:
    """Latencies of good blocks, without canaries."""
    samples: dict[Key, list[float]] = {}
    for record in records:
        if record.outcome is Outcome.OK and record.role == "work" and not is_stream(record):
            samples.setdefault(layout.key_of(record), []).extend(timed_ms(record))
    return samples


def _draw(axes: Axes, summary: Summary, y: float, samples: list[float]) -> None:
    assert summary.latency is not None
    colour = backend_colour(summary.backend)
    samples = layout.thin(sorted(samples), MAX_TICKS)
    axes.plot(samples, [y] * len(samples), "|", color=colour, alpha=0.45, markersize=7, markeredgewidth=1)
    if summary.latency.interval_ms:
        low, high = summary.latency.interval_ms.low, summary.latency.interval_ms.high
        axes.plot([low, high], [y, y], color=colour, linewidth=2.5, solid_capstyle="round")
    face = PAGE if summary.precision.startswith("fp16") else colour
    axes.plot(
        [summary.latency.median_ms], [y], "D" if summary.precision == "relaxed" else "o",
        color=colour, markerfacecolor=face, markersize=6, markeredgewidth=1.5,
    )  # fmt: skip
    axes.annotate(
        wording.ms(summary.latency.median_ms), (1.0, y), xycoords=("axes fraction", "data"), xytext=(6, 0),
        textcoords="offset points", va="center", fontsize=8.5,
    )  # fmt: skip


def _keys(rows: Sequence[Summary]) -> list[Line2D]:
    backends = list(dict.fromkeys(row.backend for row in rows))
    keys = [Line2D([], [], marker="o", linestyle="", color=backend_colour(b), label=b) for b in backends]
    if any(row.precision.startswith("fp16") for row in rows):
        keys.append(Line2D([], [], marker="o", linestyle="", color=MUTED, markerfacecolor=PAGE, label="hollow: fp16"))
    keys.append(Line2D([], [], marker="|", linestyle="", color=MUTED, markersize=8, label="one sample"))
    if any(row.latency and row.latency.interval_ms for row in rows):
        keys.append(Line2D([], [], color=MUTED, linewidth=2.5, label="95 % interval of the median"))
    return keys


def distribution(summaries: Sequence[Summary], records: Sequence[Record]) -> str | None:
    """Which share of the inferences took at most so long (ECDF): one panel a device and workload, a curve a cell."""
    samples = samples_by_key(records)
    found: dict[str, list[Summary]] = {}
    for summary in summaries:
        own = found.setdefault(f"{summary.serial} {summary.source} {summary.workload}", [])
        if len(samples.get(layout.key_of(summary), ())) >= 2 and len(own) < MAX_CURVES:
            own.append(summary)
    found = {name: own for name, own in list(found.items())[: layout.MAX_PANELS] if own}
    if not found:
        return None
    names = wording.naming(summaries)
    colours = dict(layout.cell_colours([summary.cell_id for own in found.values() for summary in own]))

    def draw(axes: Axes, _: str, own: list[Summary]) -> None:
        for summary in own:
            label = wording.cell(summary, names._replace(workload=False))
            _draw_curve(axes, sorted(samples[layout.key_of(summary)]), colours[summary.cell_id], label)
        axes.set_title(" · ".join([layout.device_of(own[0]), *([own[0].workload] if names.workload else [])]))
        _finish(axes, [v for summary in own for v in samples[layout.key_of(summary)]])

    with style():
        figure = layout.panels(found, 215, draw)
        return to_svg(figure, "distribution", "Distribution of latencies by device and cell")


def _draw_curve(axes: Axes, ordered: list[float], colour: str, label: str) -> None:
    few = len(ordered) <= FEW_SAMPLES
    points = layout.thin([(value, (i + 1) / len(ordered)) for i, value in enumerate(ordered)], MAX_TICKS)
    ordered, shares = [value for value, _ in points], [share for _, share in points]
    axes.step([ordered[0], *ordered], [0.0, *shares], where="post", color=colour, linewidth=1.4, label=label)
    if few:
        axes.plot(ordered, shares, ".", color=colour, markersize=3.5)


def _finish(axes: Axes, values: Sequence[float]) -> None:
    axes.set_ylim(0, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 0.9, 1.0], ["0", "25 %", "50 %", "75 %", "90 %", ""])
    layout.fit_axis(axes, values)
    if axes.get_xscale() == "linear":
        margin = 0.06 * (max(values) - min(values)) or 0.05 * max(values)
        axes.set_xlim(min(values) - margin, max(values) + margin)
    axes.set_xlabel("ms")
    axes.legend(loc="lower right", fontsize=7.5, handlelength=1.2)
    bare(axes, grid="both")
