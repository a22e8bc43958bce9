"""A table of one time column and one of power, or of current and voltage: what Monsoon's files and plain ones share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.errors import TableError
from orchestrator.exchange.delimited_table import Table, cell

from .recording import Readings, Recording

_SCALAR = re.compile(r"^np\.\w+\((.*)\)$")


@dataclass(frozen=True)
class Column:
    """A column by its place, with the factor to s, W, A or V."""

    index: int
    title: str
    factor: float


@dataclass(frozen=True)
class Layout:
    """Where the figures stand: `parts` is one column of power, or current and voltage."""

    header_line: int
    time: Column
    parts: tuple[Column, ...]

    @property
    def named(self) -> str:
        return " x ".join(part.title for part in self.parts)


def read_columns(table: Table, layout: Layout, kind: str) -> Recording:
    """All rows below the titles. Rows without any figure are passed over. Raises TableError."""
    readings = Readings()
    wanted = (layout.time, *layout.parts)
    for line, cells in table.rows():
        if line <= layout.header_line or not any(cells) or is_comment(cells):
            continue
        t_s, *parts = (_figure(table, line, cells, column) for column in wanted)
        power_w = parts[0] * parts[1] if len(parts) == 2 else parts[0]
        if t_s < readings.last_s:
            raise table.falling(line, layout.time.title, t_s / layout.time.factor, readings.last_s / layout.time.factor)
        readings.add(t_s, power_w)
    if len(readings) < 2:
        raise TableError(f"{table.path}: {len(readings)} readings, needed: at least 2")
    return Recording(table.path, kind, layout.named, *readings.series())


def is_comment(cells: Sequence[str]) -> bool:
    return cells[0].startswith("#")


def _figure(table: Table, line: int, cells: Sequence[str], column: Column) -> float:
    """A figure in SI units; `np.float64(1.5)`, which PyMonsoon writes with newer NumPy versions, is 1.5."""
    text = cell(cells, column.index)
    if not text:
        raise table.error(line, column.title, "found nothing, allowed: a number")
    match = _SCALAR.match(text)
    return table.number(match[1] if match else text, line, column.title) * column.factor
