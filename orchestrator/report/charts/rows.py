"""Rows and panels that charts share: one row a device and cell, grouped by device; one panel a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from orchestrator.model.device import Source
from orchestrator.model.record import Record
from orchestrator.report import wording
from orchestrator.report.drawing import BACKENDS, MUTED, PALETTE, bare, new_figure
from orchestrator.statistics import Summary

WIDTH_PX = 1120
ROW_PX = 17
MAX_ROWS = 90
MAX_PANELS = 12
LOG_FROM = 8.0
"""Ratio of largest to smallest from which an axis is logarithmic."""

NEAR = 1.6
"""Ratio of largest to smallest up to which values are close."""

Key = tuple[str, Source, str]
"""Serial, source, cell: what a summary is of."""
Item = TypeVar("Item")


def key_of(one: Summary | Record) -> Key:
    return (one.serial if isinstance(one, Summary) else one.device.serial), one.source, one.cell_id


def height_px(rows: Sequence[Summary]) -> float:
    return ROW_PX * (len(rows) + 1.2 * len({row.serial for row in rows}))


def positions_of(rows: Sequence[Summary]) -> list[float]:
    """Row positions from the top, with a gap for the device's name before each group."""
    positions, y, previous = [], 0.0, ""
    for row in rows:
        y += 2.2 if row.serial != previous else 1.0
        positions.append(y)
        previous = row.serial
    return positions


def label_rows(axes: Axes, rows: Sequence[Summary], positions: Sequence[float], *, names: wording.Naming) -> None:
    """Cells on the axis, the device's name above its group."""
    axes.set_yticks(positions, [wording.cell(row, names) for row in rows])
    axes.set_ylim(positions[-1] + 0.8, positions[0] - 1.9)
    bare(axes, grid="x")
    previous = ""
    for row, y in zip(rows, positions, strict=True):
        if row.serial != previous:
            axes.annotate(
                device_of(row), (0.0, y - 1.05), xycoords=("axes fraction", "data"), va="center",
                fontsize=9.5, fontweight="bold", annotation_clip=False,
            )  # fmt: skip
        previous = row.serial


def device_of(summary: Summary) -> str:
    """`R58M · SM-G930F · phone`; in capitals what is no device's own."""
    words = (summary.serial, wording.short_name(summary.model), summary.profile, wording.source_word(summary.source))
    return " · ".join(dict.fromkeys(filter(None, words)))


def device_in(record: Record) -> str:
    """A panel's title: serial and profile, and in capitals where the figures are no device's own."""
    word = wording.source_word(record.source)
    return " · ".join(filter(None, (record.device.serial, record.device.profile, word if word.isupper() else "")))


def fit_axis(axes: Axes, values: Sequence[float]) -> None:
    """From zero, or logarithmic where values differ widely."""
    if values and min(values) > 0 and max(values) / min(values) > LOG_FROM:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(left=min(0.0, *values) if values else 0.0)


def zoom_axis(axes: Axes, values: Sequence[float]) -> bool:
    """As `fit_axis`, but without the empty part from zero where all values are close; whether it is left out."""
    low, high = min(values), max(values)
    if low <= 0 or high / low > NEAR:
        fit_axis(axes, values)
        return False
    margin = 0.6 * (high - low) or 0.1 * high
    axes.set_xlim(max(0.0, low - margin), high + 0.25 * margin)
    return True


def by_device(records: Sequence[Record]) -> dict[str, list[Record]]:
    """Records by serial in order of time, of the first few devices."""
    ordered = sorted(records, key=lambda record: (record.device.serial, record.started_at))
    groups = {serial: list(group) for serial, group in groupby(ordered, key=lambda r: r.device.serial)}
    return dict(list(groups.items())[:MAX_PANELS])


def panels(
    found: Mapping[str, Item], panel_px: float, draw: Callable[[Axes, str, Item], None], *, columns: int = 2
) -> Figure:
    """One panel for each entry, in up to so many columns; empty ones are hidden."""
    columns = min(columns, len(found))
    height = -(-len(found) // columns)
    figure = new_figure(WIDTH_PX, 40 + panel_px * height)
    axes = list(figure.subplots(height, columns, squeeze=False).flat)
    for each, (name, item) in zip(axes, found.items(), strict=False):
        draw(each, name, item)
    for each in axes[len(found) :]:
        each.set_visible(False)
    return figure


def thin(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many of the items, evenly spaced in their order, the first and the last among them.

    Of sorted values these are quantiles: a drawing of them looks like that of all.
    """
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def backend_of(record: Record) -> str:
    return record.runs_on.api.value if record.runs_on else ""


def backend_colour(backend: str) -> str:
    return BACKENDS.get(backend, MUTED)


def cell_colours(cell_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Cell -> colour, in their order; colours repeat where there are more cells than colours."""
    for index, cell_id in enumerate(dict.fromkeys(cell_ids)):
        yield cell_id, PALETTE[index % len(PALETTE)]
