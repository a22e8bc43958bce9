"""Read plain series of figures: CSV with the columns series, time and value."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from orchestrator.errors import TableError

from .delimited_table import Table, cell

COLUMNS = ("series", "time", "value")


class Point(NamedTuple):
    """One figure; `time` as the file has it."""

    time: str
    value: float


def read_series(path: Path) -> dict[str, list[Point]]:
    """By name, each in order of time: numbers, or dates in ISO 8601. Raises TableError."""
    table = Table(path)
    rows = table.rows()
    line, head = next(rows, (1, []))
    titles = [title.lower() for title in head]
    missing = [name for name in COLUMNS if name not in titles]
    if missing:
        raise table.error(
            line, "", f"there is no column {' nor '.join(missing)}", remedy=f"columns: {', '.join(COLUMNS)}"
        )
    places = [titles.index(name) for name in COLUMNS]
    found: dict[str, list[tuple[float, Point]]] = {}
    for line, cells in rows:
        if any(cells):
            name, time, value = (cell(cells, place) for place in places)
            point = Point(time, table.number(value, line, "value"))
            found.setdefault(name, []).append((_when(table, line, time), point))
    if not found:
        raise TableError(f"{path}: there is no row below the titles", remedy="give one row a figure")
    return {name: _ordered(points) for name, points in found.items()}


def _when(table: Table, line: int, text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        pass
    try:
        return table.number(text, line, "time")
    except TableError:
        what = f"found {text!r}, allowed: a number, or a date such as 2026-11-23 or 2026-11-23T04:00:00Z"
        raise table.error(line, "time", what) from None


def _ordered(points: Sequence[tuple[float, Point]]) -> list[Point]:
    """Those of one time keep the order of the file."""
    return [point for _, point in sorted(points, key=lambda each: each[0])]
