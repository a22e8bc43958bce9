"""A table of one time column and one of power, or of current and voltage: what meters' and plain files share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.exchange.delimited_table import Table, cell

from .blocks import NotPlain, blocks
from .points import Points, Series
from .recording import Recording, Told, TraceDoubt, TraceDoubtCode, recorded
from .time_base import time_unit
from .units import QUANTITIES, parse_title, with_units

_SCALAR = re.compile(r"^np\.\w+\((.*)\)$")


@dataclass(frozen=True)
class Column:
    """A column by its place, with the factor to s, W, A or V."""

    index: int
    title: str
    factor: float
    found: str = ""
    """Of times: the unit that was found by the figures."""

    @property
    def read_as(self) -> str:
        """Of times: the title with the unit."""
        unit = next(unit for unit, factor in QUANTITIES["time"].items() if factor == self.factor)
        return f"{self.title}, in {unit}"


def time_column(table: Table, line: int, index: int, title: str, told: Told) -> Column:
    """The column of times in the unit that is told, titled or found. Raises TableError."""
    unit, found = time_unit(table, line, index, parse_title(title), told.time_unit)
    return Column(index, title, QUANTITIES["time"][unit], unit if found else "")


@dataclass(frozen=True)
class Layout:
    """Where the figures stand: `parts` is one column of power, or current and voltage, or current at known volts."""

    header_line: int
    time: Column
    parts: tuple[Column, ...]
    volts: Callable[[Series], Series] | float | None = None
    """What the only part, a current, is to be multiplied with: at the times of the file, in s."""
    volts_named: str = ""
    also: tuple[Column, ...] = ()
    """Current and voltage, where the table has them beside the power."""

    @property
    def named(self) -> str:
        return " x ".join([*(part.title for part in self.parts), *([self.volts_named] if self.volts_named else [])])


def titles_at(table: Table, line: int, cells: list[str]) -> tuple[int, list[str]]:
    """The last line of the titles that begin here, and the titles, with the units that the row below may hold."""
    below = next(((at, row) for at, row in table.head() if at > line and any(row)), None)
    both = with_units(cells, below[1]) if below else None
    return (line, cells) if both is None or below is None else (below[0], both)


def read_columns(table: Table, layout: Layout, kind: str) -> Recording:
    """All rows below the titles. Rows without any figure are passed over. Raises TableError."""
    try:
        points = _by_blocks(table, layout)
    except NotPlain:
        points = _by_rows(table, layout)
    recording = recorded(table.path, kind, layout.named, points, layout.time.read_as)
    if not layout.time.found:
        return recording
    detail = f"column {layout.time.title!r} names no unit: its times were read in {layout.time.found}"
    return recording.doubted(TraceDoubt(code=TraceDoubtCode.TIME_UNIT_FOUND, detail=detail, file=str(table.path)))


def _by_blocks(table: Table, layout: Layout) -> Points:
    points = Points()
    wanted = (layout.time, *layout.parts)
    for figures in blocks(table, layout.header_line, [column.index for column in wanted]):
        t_s, *parts = (values * column.factor for values, column in zip(figures, wanted, strict=True))
        if len(t_s) and (t_s[0] < points.last_s or bool((np.diff(t_s) < 0).any())):
            raise NotPlain
        points.extend(t_s, _power(layout, t_s, parts))
    return points


def _by_rows(table: Table, layout: Layout) -> Points:
    points = Points()
    wanted = (layout.time, *layout.parts)
    for line, cells in table.rows():
        if line <= layout.header_line or not any(cells) or is_comment(cells):
            continue
        t_s, *parts = (number(table, line, cells, column) for column in wanted)
        if t_s < points.last_s:
            raise table.falling(line, layout.time.title, t_s / layout.time.factor, points.last_s / layout.time.factor)
        (power_w,) = _power(layout, np.array([t_s]), [np.array([part]) for part in parts])
        points.add(t_s, power_w)
    return points


def _power(layout: Layout, t_s: Series, parts: Sequence[Series]) -> Series:
    power = parts[0] * parts[1] if len(parts) == 2 else parts[0]
    if layout.volts is None:
        return power
    return power * (layout.volts if isinstance(layout.volts, float) else layout.volts(t_s))


def is_comment(cells: Sequence[str]) -> bool:
    return cells[0].startswith("#")


def number(table: Table, line: int, cells: Sequence[str], column: Column) -> float:
    """A figure in SI units; `np.float64(1.5)`, which PyMonsoon writes with newer NumPy versions, is 1.5."""
    text = cell(cells, column.index)
    if not text:
        raise table.error(line, column.title, "found nothing, allowed: a number")
    match = _SCALAR.match(text)
    return table.number(match[1] if match else text, line, column.title) * column.factor
