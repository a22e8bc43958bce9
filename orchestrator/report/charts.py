"""The charts of a report: each takes summaries or records and gives an SVG, or None where there is nothing to draw."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import median
from typing import get_args

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from orchestrator.model.event import SetupName
from orchestrator.model.record import Record
from orchestrator.statistics import NS_PER_MS, Summary, timed_ms

from . import wording
from .drawing import BACKENDS, FOREGROUND, GRID, MUTED, PAGE, PALETTE, bare, new_figure, style, to_svg

WIDTH_PX = 1120
ROW_PX = 17
MAX_ROWS = 90
MAX_PANELS = 12
COLD_FROM = 1.5
"""Ratio to the median from which the slowest set-up is worth a word."""
LOG_FROM = 8.0
"""Ratio of largest to smallest from which an axis of times is logarithmic."""


def latency(summaries: Sequence[Summary], records: Sequence[Record]) -> str | None:
    """Median with its interval over every raw sample, one row a device and cell, grouped by device."""
    rows = [summary for summary in summaries if summary.latency][:MAX_ROWS]
    if not rows:
        return None
    samples = _samples_by_row(records)
    with style():
        figure = new_figure(WIDTH_PX, 70 + _height(rows))
        axes = figure.subplots()
        positions = _positions(rows)
        for summary, y in zip(rows, positions, strict=True):
            _draw_latency(axes, summary, y, samples.get((summary.serial, summary.cell_id), []))
        _row_labels(axes, rows, positions)
        _time_axis(axes, [v for s in rows for v in samples.get((s.serial, s.cell_id), [])])
        axes.set_xlabel("latency of one inference, ms")
        axes.legend(handles=_keys(rows), loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=6)
        return to_svg(figure, "latency", "Latency by device and cell")


def _samples_by_row(records: Sequence[Record]) -> dict[tuple[str, str], list[float]]:
    samples: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if record.outcome == "ok":
            samples.setdefault((record.device.serial, record.cell_id), []).extend(timed_ms(record))
    return samples


def _height(rows: Sequence[Summary]) -> float:
    return ROW_PX * (len(rows) + 1.2 * len({row.serial for row in rows}))


def _positions(rows: Sequence[Summary]) -> list[float]:
    """Row positions from the top, with a gap for the device's name before each group."""
    positions, y, previous = [], 0.0, ""
    for row in rows:
        y += 2.2 if row.serial != previous else 1.0
        positions.append(y)
        previous = row.serial
    return positions


def _draw_latency(axes: Axes, summary: Summary, y: float, samples: list[float]) -> None:
    assert summary.latency is not None
    colour = BACKENDS.get(summary.backend, MUTED)
    axes.plot(samples, [y] * len(samples), "|", color=colour, alpha=0.45, markersize=7, markeredgewidth=1)
    if summary.latency.interval_ms:
        low, high = summary.latency.interval_ms.low, summary.latency.interval_ms.high
        axes.plot([low, high], [y, y], color=colour, linewidth=2.5, solid_capstyle="round")
    face = PAGE if summary.precision == "fp16" else colour
    axes.plot(
        [summary.latency.median_ms], [y], "D" if summary.precision == "relaxed" else "o",
        color=colour, markerfacecolor=face, markersize=6, markeredgewidth=1.5,
    )  # fmt: skip
    axes.annotate(
        wording.ms(summary.latency.median_ms), (1.0, y), xycoords=("axes fraction", "data"), xytext=(6, 0),
        textcoords="offset points", va="center", fontsize=8.5,
    )  # fmt: skip


def _row_labels(axes: Axes, rows: Sequence[Summary], positions: Sequence[float]) -> None:
    """Cells on the axis, the device's name above its group."""
    several = wording.several_workloads(rows)
    axes.set_yticks(positions, [wording.cell(row, workload=several) for row in rows])
    axes.set_ylim(positions[-1] + 0.8, positions[0] - 1.9)
    bare(axes, grid="x")
    previous = ""
    for row, y in zip(rows, positions, strict=True):
        if row.serial != previous:
            axes.annotate(
                _device(row), (0.0, y - 1.05), xycoords=("axes fraction", "data"), va="center",
                fontsize=9.5, fontweight="bold", annotation_clip=False,
            )  # fmt: skip
        previous = row.serial


def _device(summary: Summary) -> str:
    return " · ".join(
        dict.fromkeys(
            filter(
                None,
                (
                    summary.serial,
                    wording.short_name(summary.model),
                    summary.profile,
                    wording.source_word(summary.source),
                ),
            )
        )
    )


def _time_axis(axes: Axes, values: Sequence[float]) -> None:
    if values and min(values) > 0 and max(values) / min(values) > LOG_FROM:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(left=0)


def _keys(rows: Sequence[Summary]) -> list[Line2D]:
    backends = list(dict.fromkeys(row.backend for row in rows))
    keys = [Line2D([], [], marker="o", linestyle="", color=BACKENDS.get(b, MUTED), label=b) for b in backends]
    if any(row.precision == "fp16" for row in rows):
        keys.append(Line2D([], [], marker="o", linestyle="", color=MUTED, markerfacecolor=PAGE, label="hollow: fp16"))
    keys.append(Line2D([], [], marker="|", linestyle="", color=MUTED, markersize=8, label="one sample"))
    if any(row.latency and row.latency.interval_ms for row in rows):
        keys.append(Line2D([], [], color=MUTED, linewidth=2.5, label="95 % interval of the median"))
    return keys


def drift(records: Sequence[Record]) -> str | None:
    """Every inference over the time of the run, relative to its cell's median: one panel a device."""
    found = _by_device([record for record in records if timed_ms(record) and _has_times(record)])
    if not found:
        return None
    with style():
        columns = min(2, len(found))
        height = -(-len(found) // columns)
        figure = new_figure(WIDTH_PX, 30 + 165 * height)
        panels = list(figure.subplots(height, columns, squeeze=False).flat)
        for axes, (serial, blocks) in zip(panels, found.items(), strict=False):
            _draw_drift(axes, serial, blocks)
        for axes in panels[len(found) :]:
            axes.set_visible(False)
        backends = dict.fromkeys(_backend(record) for blocks in found.values() for record in blocks)
        keys = [Line2D([], [], marker=".", color=BACKENDS.get(b, MUTED), label=b) for b in backends]
        keys.append(Line2D([], [], marker="x", linestyle="", color=MUTED, markersize=4, label="warm-up"))
        figure.legend(handles=keys, loc="outside upper center", ncols=5)
        return to_svg(figure, "drift", "Latency over the time of the run")


def _has_times(record: Record) -> bool:
    """Imported samples need not say when they were taken."""
    return any(sample.start_ns for sample in record.samples)


def _by_device(records: Sequence[Record]) -> dict[str, list[Record]]:
    ordered = sorted(records, key=lambda record: (record.device.serial, record.started_at))
    groups = {serial: list(group) for serial, group in groupby(ordered, key=lambda r: r.device.serial)}
    return dict(list(groups.items())[:MAX_PANELS])


def _backend(record: Record) -> str:
    return record.runs_on.api.value if record.runs_on else ""


def _draw_drift(axes: Axes, serial: str, records: Sequence[Record]) -> None:
    by_cell: dict[str, list[float]] = {}
    for record in records:
        by_cell.setdefault(record.cell_id, []).extend(timed_ms(record))
    start = min(sample.start_ns for record in records for sample in record.samples)
    top = 1.15 * max(value / median(values) for values in by_cell.values() for value in values)
    for record in records:
        middle = median(by_cell[record.cell_id])
        colour = BACKENDS.get(_backend(record), MUTED)
        for phase, marker, line in (("timed", ".", "-"), ("warmup", "x", "")):
            chosen = [sample for sample in record.samples if sample.phase == phase]
            x = [(sample.start_ns - start) / 1e9 for sample in chosen]
            y = [min(sample.duration_ns / NS_PER_MS / middle, 0.97 * top) for sample in chosen]
            axes.plot(x, y, marker=marker, linestyle=line, color=colour, linewidth=1, markersize=4.5, markeredgewidth=1)
    axes.axhline(1.0, color=GRID, linewidth=1.2, zorder=0)
    axes.set_title(" · ".join(filter(None, (serial, records[0].device.profile))))
    axes.set_ylim(0, top)
    axes.set_xlabel("s since the device's first inference")
    axes.set_ylabel("relative to median")
    bare(axes, grid="y")


def setup(summaries: Sequence[Summary]) -> str | None:
    """Stacked set-up steps, one row a device and cell."""
    rows = [summary for summary in summaries if summary.setup_ms][:MAX_ROWS]
    if not rows:
        return None
    present = {step for row in rows for step in row.setup_ms}
    steps = [step for step in get_args(SetupName) if step in present and step != "slot"]
    with style():
        figure = new_figure(WIDTH_PX, 70 + _height(rows))
        axes = figure.subplots()
        positions = _positions(rows)
        left = [0.0] * len(rows)
        for index, step in enumerate(steps):
            widths = [row.setup_ms.get(step, 0.0) for row in rows]
            axes.barh(positions, widths, left=left, height=0.72, color=PALETTE[index % len(PALETTE)], label=step)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        for y, row, total in zip(positions, rows, left, strict=True):
            axes.annotate(
                _setup_words(row, total), (total, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
            )
        _row_labels(axes, rows, positions)
        axes.set_xlabel("ms before the first inference (median over blocks; waiting for the engine slot left out)")
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=min(9, len(steps)))
        return to_svg(figure, "setup", "Set-up time by step")


def _setup_words(row: Summary, total_ms: float) -> str:
    """The median total, and the slowest block where it waited for what the others found in a cache."""
    if row.slowest_setup_ms < COLD_FROM * total_ms:
        return wording.ms(total_ms)
    return f"{wording.ms(total_ms)} (slowest block: {wording.ms(row.slowest_setup_ms)})"


def power(records: Sequence[Record]) -> str | None:
    """Readings of the battery gauge over the run, one panel a device."""
    found = _by_device([record for record in records if any(_watt(reading) for reading in record.power)])
    if not found:
        return None
    with style():
        columns = min(2, len(found))
        height = -(-len(found) // columns)
        figure = new_figure(WIDTH_PX, 30 + 150 * height)
        panels = list(figure.subplots(height, columns, squeeze=False).flat)
        for axes, (serial, blocks) in zip(panels, found.items(), strict=False):
            _draw_power(axes, serial, blocks)
        for axes in panels[len(found) :]:
            axes.set_visible(False)
        backends = dict.fromkeys(_backend(record) for blocks in found.values() for record in blocks)
        keys = [Line2D([], [], color=BACKENDS.get(b, MUTED), label=b) for b in backends]
        figure.legend(handles=keys, loc="outside upper center", ncols=5)
        return to_svg(figure, "power", "Power over the time of the run")


def _watt(reading: object) -> float | None:
    current, voltage = getattr(reading, "current_ua", None), getattr(reading, "voltage_uv", None)
    return abs(current * voltage) * 1e-12 if current and voltage else None


def _draw_power(axes: Axes, serial: str, records: Sequence[Record]) -> None:
    start = min(reading.t_ns for record in records for reading in record.power)
    for record in records:
        points = [((r.t_ns - start) / 1e9, watt) for r in record.power if (watt := _watt(r)) is not None]
        colour = BACKENDS.get(_backend(record), MUTED)
        axes.plot([t for t, _ in points], [w for _, w in points], color=colour, linewidth=1.2)
    axes.set_title(" · ".join(filter(None, (serial, records[0].device.profile))))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("s since the first reading")
    axes.set_ylabel("W")
    bare(axes, grid="y")


def layers(summary: Summary, name: str, largest: int = 12) -> str | None:
    """The slowest steps of one cell on one device, with their share of the whole."""
    if not summary.layers:
        return None
    ordered = sorted(summary.layers, key=lambda layer: -layer.median_ms)
    rows = [(layer.layer, layer.median_ms) for layer in ordered[:largest]]
    rest = sum(layer.median_ms for layer in ordered[largest:])
    total = sum(layer.median_ms for layer in ordered)
    with style():
        figure = new_figure(WIDTH_PX / 2 - 20, 50 + ROW_PX * len(rows))
        axes = figure.subplots()
        values = [value for _, value in rows]
        axes.barh(range(len(rows)), values, height=0.7, color=BACKENDS.get(summary.backend, FOREGROUND))
        axes.set_yticks(range(len(rows)), [_short(label) for label, _ in rows], fontsize=8)
        axes.invert_yaxis()
        for y, value in enumerate(values):
            text = f"{wording.ms(value)} · {value / total:.0%}"
            axes.annotate(text, (value, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
        others = f" (the {len(ordered) - largest} others: {rest / total:.0%})" if rest else ""
        axes.set_title(f"{wording.cell(summary, workload=False)}: {wording.ms(total)} ms on the device{others}")
        axes.margins(x=0.2)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        bare(axes, grid="x")
        return to_svg(figure, name, f"Slowest layers, {summary.label} on {summary.serial}")


def _short(label: str, limit: int = 34) -> str:
    return label if len(label) <= limit else label[: limit - 1] + "…"
