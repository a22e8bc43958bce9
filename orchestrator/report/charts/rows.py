"""Rows and panels that charts share: one row a device and cell, grouped by device; one panel a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from matplotlib.axes import Axes

from orchestrator.analysis.statistics import Summary
from orchestrator.figures import BlockFigures
from orchestrator.model.device import Source
from orchestrator.model.record import Record
from orchestrator.report import wording
from orchestrator.report.drawing import bare, logarithmic
from orchestrator.report.heading import wrap

WIDTH_PX = 1120
PANEL_PX = 540
"""Width of a panel: two stand side by side where the page is wide enough."""
ROW_PX = 17
AXIS_PX = 50
"""Room below the rows for the axis and its name."""
CELL_PX = 330
"""Widest line of a cell's name."""
CELL_PT, DEVICE_PT = 9.0, 9.5
MAX_ROWS = 90
MAX_PANELS = 12
LOG_FROM = 8.0
"""Ratio of largest to smallest from which an axis is logarithmic."""

NEAR = 1.6
"""Ratio of largest to smallest up to which values are close."""


Key = tuple[str, Source, str]
"""Serial, source, cell: what a summary is of."""
Item = TypeVar("Item")
Block = TypeVar("Block", BlockFigures, Record)


def key_of(one: Summary | BlockFigures | Record) -> Key:
    return (one.device.serial if isinstance(one, Record) else one.serial), one.source, one.cell_id


class Rows(NamedTuple):
    """The rows' places, from the top, with the device's name above its group; all in heights of one line."""

    summaries: Sequence[Summary]
    labels: list[str]
    devices: dict[int, str]
    """Name of the device above the row of this number."""
    positions: list[float]
    end: float

    @property
    def height_px(self) -> float:
        return AXIS_PX + ROW_PX * self.end


def rows_of(summaries: Sequence[Summary], names: wording.Naming) -> Rows:
    """Names that are too long take several lines."""
    labels = [wrap(wording.cell(row, names), CELL_PX, CELL_PT) for row in summaries]
    devices: dict[int, str] = {}
    positions, y, previous = [], 0.0, None
    for index, (row, label) in enumerate(zip(summaries, labels, strict=True)):
        lines = 0.85 * label.count("\n")
        if (row.serial, row.source) != previous:
            devices[index] = wrap(device_of(row), WIDTH_PX - 20, DEVICE_PT, bold=True)
            y += 1.3 + devices[index].count("\n")
        positions.append(y + (1 + lines) / 2)
        y, previous = y + 1 + lines, (row.serial, row.source)
    return Rows(summaries, labels, devices, positions, y + 0.2)


def label_rows(axes: Axes, rows: Rows) -> None:
    """Cells on the axis, the device's name above its group."""
    axes.set_yticks(rows.positions, rows.labels)
    axes.set_ylim(rows.end, 0)
    bare(axes, grid="x")
    for index, name in rows.devices.items():
        y = rows.positions[index] - (1 + 0.85 * rows.labels[index].count("\n")) / 2
        axes.annotate(
            name, (4 / WIDTH_PX, y), xycoords=("figure fraction", "data"), va="bottom", fontsize=DEVICE_PT,
            fontweight="bold", annotation_clip=False,
        )  # fmt: skip


def device_of(summary: Summary) -> str:
    """`R58M · SM-G930F · phone`; in capitals what is no device's own."""
    parts = (summary.serial, wording.short_name(summary.model), summary.profile, wording.source_word(summary.source))
    return " · ".join(dict.fromkeys(filter(None, parts)))


def device_in(record: Record) -> str:
    """A panel's title: serial and profile, and in capitals where the figures are no device's own."""
    word = wording.source_word(record.source)
    return " · ".join(filter(None, (record.device.serial, record.device.profile, word if word.isupper() else "")))


def fit_axis(axes: Axes, values: Sequence[float]) -> None:
    """Begin the axis at zero, or make it logarithmic where values differ widely."""
    if values and min(values) > 0 and max(values) / min(values) > LOG_FROM:
        logarithmic(axes.xaxis)
    else:
        axes.set_xlim(left=min(0.0, *values) if values else 0.0)


def zoom_axis(axes: Axes, values: Sequence[float]) -> bool:
    """Fit the axis, but without the empty part from zero where all values are close; return whether it is left out."""
    low, high = min(values), max(values)
    if low <= 0 or high / low > NEAR:
        fit_axis(axes, values)
        return False
    margin = 0.6 * (high - low) or 0.1 * high
    axes.set_xlim(max(0.0, low - margin), high + 0.25 * margin)
    return True


def by_device(blocks: Sequence[Block]) -> dict[str, list[Block]]:
    """Blocks by serial in order of time, of the first few devices."""
    ordered = sorted(blocks, key=lambda block: (key_of(block)[0], block.started_at))
    return first_panels({serial: list(group) for serial, group in groupby(ordered, key=lambda one: key_of(one)[0])})


def thin(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most so many of the items, evenly spaced in their order, the first and the last among them.

    Of sorted values these are quantiles: a drawing of them looks like that of all.
    """
    if len(items) <= most:
        return list(items)
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def first_panels(found: Mapping[str, Item]) -> dict[str, Item]:
    """Return the panels of the first few devices."""
    return dict(list(found.items())[:MAX_PANELS])
