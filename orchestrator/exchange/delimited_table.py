"""Reads a delimited file row by row; every error names file, line, column, what was found and what is allowed."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from orchestrator.errors import TableError

HEAD_ROWS = 60
DELIMITERS = (",", ";", "\t")


class Table:
    """One file. A row is its line number and its cells, stripped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._delimiter = ""

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """All rows from the first, read as they are asked for. Raises TableError."""
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                self._delimiter = self._delimiter or _delimiter(list(islice(file, HEAD_ROWS)))
                file.seek(0)
                reader = csv.reader(file, delimiter=self._delimiter)
                for cells in reader:
                    yield reader.line_num, [cell.strip() for cell in cells]
        except UnicodeDecodeError as e:
            raise TableError(f"{self.path}: is not text in UTF-8: {e.reason} at byte {e.start}", remedy=_SAVE) from e
        except csv.Error as e:
            raise TableError(f"{self.path}: cannot be read as a table: {e}", remedy=_SAVE) from e
        except OSError as e:
            raise TableError(f"{self.path}: cannot be read: {e.strerror}", remedy="check the path") from e

    def head(self) -> list[tuple[int, list[str]]]:
        """The first rows: enough to see what kind of file it is."""
        return list(islice(self.rows(), HEAD_ROWS))

    def number(self, text: str, line: int, column: str) -> float:
        """A finite number. Raises TableError."""
        try:
            value = float(text.replace("_", "x"))
        except ValueError:
            raise self.error(line, column, f"found {text!r}, allowed: a number such as 12 or 0.5") from None
        if not math.isfinite(value):
            raise self.error(line, column, f"found {text!r}, allowed: a finite number")
        return value

    def falling(self, line: int, column: str, found: float, before: float) -> TableError:
        """The error of a time that is earlier than the one before."""
        return self.error(line, column, f"found {found:g} after {before:g}, allowed: times that do not fall")

    def error(self, line: int, column: str, what: str, remedy: str | None = None) -> TableError:
        where = f", column {column!r}" if column else ""
        return TableError(f"{self.path}, line {line}{where}: {what}", remedy=remedy)


_SAVE = "save it as CSV in UTF-8"


def cell(cells: Sequence[str], index: int) -> str:
    """A cell of a row; empty where the row is shorter."""
    return cells[index] if index < len(cells) else ""


def _delimiter(lines: Sequence[str]) -> str:
    """What divides the fullest of the first lines into most cells."""
    return max(DELIMITERS, key=lambda mark: max((line.count(mark) for line in lines), default=0))
