"""The columns of a table of samples: those that are known, and further axes with the type of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.exchange.delimited_table import Table, cell

REQUIRED = ("device", "network", "backend", "precision", "sample_ms")
COUNTERS = ("run", "repetition", "iteration", "trial")
"""Numbers of a repetition, as foreign tables call them: neither an axis nor a block, for nobody knows whether they are
independent."""
KNOWN = (
    *REQUIRED, "layer", "block", "attempt", "role", "phase", "index", "repeat", "program", "start_ns", "outcome",
    "experiment", "source", "cause", *COUNTERS,
)  # fmt: skip
"""Columns with a meaning of their own; `farm export --format csv` writes them too."""

_AXIS = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")
_WHOLE = re.compile(r"[-+]?\d{1,18}")

Value = int | float | str | bool


@dataclass(frozen=True)
class Columns:
    """The places of a table's columns, and how the values of its axes are to be read."""

    header_line: int
    place: dict[str, int]
    axes: dict[str, Callable[[str], Value]]

    def text(self, cells: Sequence[str], name: str) -> str:
        """A cell's text; empty where the column or the cell is absent."""
        place = self.place.get(name)
        return "" if place is None else cell(cells, place)

    def options(self, cells: Sequence[str]) -> dict[str, Value]:
        """The axes of a row; an empty cell means that the axis says nothing of this row."""
        return {name: read(text) for name, read in self.axes.items() if (text := self.text(cells, name))}


def find_columns(table: Table) -> Columns:
    """Read the titles, and in one pass over the file what values each axis has. Raises TableError."""
    rows = table.rows()
    line, titles = next(((line, cells) for line, cells in rows if any(cells)), (1, []))
    place = _places(table, line, titles)
    kinds = {name: _Kind() for name in place if name not in KNOWN}
    for _, cells in rows:
        for name, kind in kinds.items():
            kind.see(cell(cells, place[name]))
    return Columns(line, place, {name: kind.reader for name, kind in kinds.items()})


def _places(table: Table, line: int, titles: Sequence[str]) -> dict[str, int]:
    place: dict[str, int] = {}
    named = list(titles)
    while named and not named[-1]:  # a comma at the end of each row
        named.pop()
    for index, title in enumerate(named):
        if not _AXIS.fullmatch(title):
            what = f"found the title {title!r}, allowed: letters, digits, `_`, `-`, `.`, a letter first"
            raise table.error(line, str(index + 1), what)
        if title in place:
            raise table.error(line, title, "two columns have this title", "remove or rename one of them")
        place[title] = index
    lacking = [name for name in REQUIRED if name not in place]
    if lacking:
        found = ", ".join(named) or "nothing"
        what = f"no column {', '.join(f'`{name}`' for name in lacking)}; found {found}"
        raise table.error(line, "", what, f"the first line names {', '.join(REQUIRED)}, and may name layer and axes")
    return place


class _Kind:
    """The type that all values of one axis can be read as: whole numbers, numbers, true and false, or text."""

    def __init__(self) -> None:
        self._whole = self._number = self._truth = True

    def see(self, text: str) -> None:
        if not text:
            return
        self._whole = self._whole and _WHOLE.fullmatch(text) is not None
        self._number = self._number and _is_number(text)
        self._truth = self._truth and text.lower() in ("true", "false")

    @property
    def reader(self) -> Callable[[str], Value]:
        if self._whole:
            return int
        if self._number:
            return float
        return _truth if self._truth else str


def _truth(text: str) -> bool:
    return text.lower() == "true"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text) is not None
