"""Chart over the time of a run: every inference, and the canaries."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from orchestrator.analysis.statistics import Summary
from orchestrator.figures import NS_PER_MS, timed_ms
from orchestrator.model.record import Outcome, Record
from orchestrator.report.colours import Colours
from orchestrator.report.drawing import FOREGROUND, GRID, MUTED, PAGE, Chart, bare, new_figure, style
from orchestrator.report.heading import put_heading

from . import rows as layout

MAX_POINTS = 2000
"""Inferences that a panel shows; of more, so many evenly spaced."""
BLOCK_WIDTH = 0.85
"""The share of a block's place that it fills; the rest parts it from the next one."""
MOST_MARKS = 7
"""Blocks whose time is told below the axis."""
TOP_PERCENTILE = 95.0
"""The percentile of a cell's latencies that sets a panel's height; what is slower is drawn at its top."""
HIGHEST = 4.0
"""The height of a panel, relative to the median: a busy host's outliers must not hide the rest."""


def drift(summaries: Sequence[Summary], records: Sequence[Record]) -> list[Chart]:
    """Every inference over the time of the run, relative to its cell's median, and the canaries: a chart a device."""
    found = layout.by_device(
        [record for record in records if timed_ms(record) and any(sample.start_ns for sample in record.samples)]
    )
    colours = Colours.of(summaries)
    hues = {summary.cell_id: (colours.name(summary), colours[summary]) for summary in summaries}
    medians = {
        layout.key_of(each): each.latency.median_ms for each in summaries if each.latency and each.latency.median_ms
    }
    return [_drift(blocks, hues, medians, f"drift{number}") for number, blocks in enumerate(found.values())]


def _drift(
    blocks: list[Record], hues: dict[str, tuple[str, str]], medians: dict[layout.Key, float], name: str
) -> Chart:
    """`hues`: the name and the colour of each cell."""
    work = [record for record in blocks if record.role == "work"]
    keys = [
        Line2D([], [], marker=".", color=colour, label=label)
        for label, colour in sorted({hues[record.cell_id] for record in work})
    ]
    if any(sample.phase == "warmup" for record in work for sample in record.samples):
        keys.append(Line2D([], [], marker="x", linestyle="", color=MUTED, markersize=4, label="warm-up"))
    if len(work) < len(blocks):
        keys.append(_canary_line([], [], label="canary: the same small workload"))
    with style():
        figure = new_figure(layout.PANEL_PX, 185)
        by_cell = {record.cell_id: hues[record.cell_id][1] for record in work}
        _draw_drift(figure.subplots(), blocks, by_cell, medians)
        title = layout.device_in(blocks[0])
        put_heading(figure, title, keys)
        return Chart(figure, name, f"Latency over the time of the run: {title}")


def _draw_drift(axes: Axes, records: list[Record], colours: dict[str, str], medians: dict[layout.Key, float]) -> None:
    ordered = sorted(records, key=_start_ns)
    place = {record.job_id: number for number, record in enumerate(ordered)}
    work = [record for record in ordered if record.role == "work"]
    by_cell: dict[layout.Key, list[float]] = {}
    for record in work:
        by_cell.setdefault(layout.key_of(record), []).extend(timed_ms(record))
    middles = {key: medians.get(key) or median(values) for key, values in by_cell.items()}  # a stream has no latency
    ratios = [float(np.percentile(values, TOP_PERCENTILE)) / middles[key] for key, values in by_cell.items()]
    top = 1.15 * min(HIGHEST, max([1.1, *ratios]))
    most = max(20, MAX_POINTS // max(1, len(work)))
    for record in work:
        middle = middles[layout.key_of(record)]
        _draw_block(axes, record, place[record.job_id], middle, top, most, colours[record.cell_id])
    canaries = [record for record in ordered if record.role == "canary" and record.outcome is Outcome.OK]
    _draw_canaries(axes, canaries, [place[record.job_id] + BLOCK_WIDTH / 2 for record in canaries], top)
    axes.axhline(1.0, color=GRID, linewidth=1.2, zorder=0)
    axes.set_ylim(max(0.0, min(2.0 - top, 0.95 * axes.dataLim.y0)), top)  # from 0 a climb would not be seen
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))  # in any height: there is room for these
    marked = layout.thin(ordered, MOST_MARKS)
    since = [(_start_ns(record) - _start_ns(ordered[0])) / 1e9 for record in marked]
    words = [f"{each:.0f}" if each >= 100 else f"{each:.3g}" for each in since]
    axes.set_xticks([place[record.job_id] for record in marked], words)
    axes.set_xlabel("blocks in order, as wide as each other; s since the device's first sample")
    axes.set_ylabel("relative to median")
    bare(axes, grid="y")


def _draw_block(
    axes: Axes, record: Record, place: int, middle_ms: float, top: float, most: int, colour: str
) -> None:  # fmt: skip
    """Draw a block over its whole place, so that one of milliseconds in a run of minutes can be seen."""
    start_ns = _start_ns(record)
    length_ns = max(sample.start_ns + sample.duration_ns for sample in record.samples) - start_ns
    for phase, marker, line in (("timed", ".", "-"), ("warmup", "x", "")):
        chosen = layout.thin([sample for sample in record.samples if sample.phase == phase], most)
        x = [place + BLOCK_WIDTH * (sample.start_ns - start_ns) / max(1, length_ns) for sample in chosen]
        y = [min(sample.duration_ns / NS_PER_MS / middle_ms, 0.97 * top) for sample in chosen]
        axes.plot(x, y, marker=marker, linestyle=line, color=colour, linewidth=1, markersize=4.5, markeredgewidth=1)


def _start_ns(record: Record) -> int:
    return min(sample.start_ns for sample in record.samples)


def _draw_canaries(axes: Axes, good: Sequence[Record], x: list[float], top: float) -> None:
    if not good:
        return
    medians = [median(timed_ms(record)) for record in good]
    middle = median(medians)
    axes.add_line(_canary_line(x, [min(value / middle, 0.97 * top) for value in medians]))


def _canary_line(x: list[float], y: list[float], label: str = "") -> Line2D:
    return Line2D(
        x, y, color=FOREGROUND, linewidth=1, linestyle=":", marker="D", markersize=5, markerfacecolor=PAGE,
        markeredgewidth=1.3, label=label, zorder=4,
    )  # fmt: skip
