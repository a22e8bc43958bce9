"""Read plain series of figures: CSV with the columns series, time and value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from orchestrator.model.errors import TableError

from .delimited_table import Table, cell

COLUMNS = ("series", "time", "value")


class Point(NamedTuple):
    """One figure; `time` as the file has it."""

    time: str
    value: float


def read_series(path: Path) -> dict[str, list[Point]]:
    """Return points by series, in order of time: numbers, or dates in ISO 8601, not both. Raises TableError."""
    table = Table(path)
    rows = table.rows()
    line, head = next(rows, (1, []))
    titles = [title.lower() for title in head]
    missing = [name for name in COLUMNS if name not in titles]
    if missing:
        raise table.error(
            line, "", f"there is no column {' nor '.join(missing)}", remedy=f"columns: {', '.join(COLUMNS)}"
        )
    twice = [name for name in COLUMNS if titles.count(name) > 1]
    if twice:
        raise table.error(line, "", f"there are several columns {twice[0]}", remedy="keep the one that counts")
    places = [titles.index(name) for name in COLUMNS]
    found: dict[str, list[tuple[float, Point]]] = {}
    kinds: dict[str, _When] = {}
    for line, cells in rows:
        if any(cells):
            name, time, value = (cell(cells, place) for place in places)
            point = Point(time, table.number(value, line, "value"))
            if name not in kinds:
                kinds[name] = _kind(table, line, time)
            found.setdefault(name, []).append((kinds[name](table, line, time), point))
    if not found:
        raise TableError(f"{path}: there is no row below the titles", remedy="give one row a figure")
    return {name: [point for _, point in sorted(points, key=lambda each: each[0])] for name, points in found.items()}


_When = Callable[[Table, int, str], float]
_DATE = "a date such as 2026-11-23 or 2026-11-23T04:00:00Z"


def _kind(table: Table, line: int, first: str) -> _When:
    """Return how a series' times are read: as its first one is. Digits alone are a number: they may count builds."""
    for kind in (_number, _date):
        try:
            kind(table, line, first)
        except TableError:
            continue
        return kind
    raise table.error(line, "time", f"found {first!r}, allowed: a number, or {_DATE}")


def _number(table: Table, line: int, text: str) -> float:
    return table.number(text, line, "time")


def _date(table: Table, line: int, text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise table.error(line, "time", f"found {text!r}, allowed: {_DATE}, as its first time is one") from None
