"""Reads a delimited file row by row, also one compressed by gzip; every error names file, line, column, what was found
and what is allowed."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from orchestrator.model.errors import TableError

HEAD_ROWS = 60
DELIMITERS = (",", ";", "\t")


TAIL_BYTES = 1 << 14
GZIP = b"\x1f\x8b"
COMMON = 0.9
_COMMA_NUMBER = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_POINT_NUMBER = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")


class Dialect(NamedTuple):
    """The marks that divide the cells of a row, and a number's whole part from its fraction."""

    delimiter: str
    decimal: str


class Table:
    """One file. A row is its line number and its cells, stripped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._dialect: Dialect | None = None

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """All rows from the first, read as they are asked for. Raises TableError."""
        try:
            with self._text() as file:
                spaces = self.dialect.delimiter == " "
                lines = (line.strip() for line in file) if spaces else file
                reader = csv.reader(lines, delimiter=self.dialect.delimiter, skipinitialspace=spaces)
                for cells in reader:
                    yield reader.line_num, [cell.strip(_BLANK) for cell in cells]
        except UnicodeDecodeError as e:
            raise TableError(
                f"{self.path}: is not text in UTF-8: {e.reason} at byte {e.start}", remedy=self._export()
            ) from e
        except csv.Error as e:
            raise TableError(f"{self.path}: cannot be read as a table: {e}", remedy=self._export()) from e
        except (EOFError, zlib.error, gzip.BadGzipFile) as e:
            raise TableError(f"{self.path}: is a damaged gzip file: {e}", remedy="copy it again") from e
        except OSError as e:
            raise TableError(f"{self.path}: cannot be read: {e.strerror}", remedy="check the path") from e

    @cached_property
    def compressed(self) -> bool:
        """True if the file is compressed by gzip. Raises OSError."""
        with self.path.open("rb") as file:
            return file.read(len(GZIP)) == GZIP

    def open(self) -> BinaryIO:
        """Open what the file holds, without its compression. Raises OSError."""
        return cast(BinaryIO, gzip.open(self.path, "rb")) if self.compressed else self.path.open("rb")

    def _text(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(self.open(), encoding="utf-8-sig", newline="")

    @property
    def dialect(self) -> Dialect:
        """Return what divides cells and what the fraction of a number. Raises OSError, UnicodeDecodeError."""
        if self._dialect is None:
            with self._text() as file:
                self._dialect = _dialect([*islice(file, HEAD_ROWS), *self.tail()])
        return self._dialect

    def tail(self) -> list[str]:
        """The last lines, as far as they are text: a few, whatever the length of the file."""
        with self.open() as file:
            last = b""
            if self.compressed:
                while more := file.read(1 << 20):
                    last = (last + more)[-TAIL_BYTES:]
            else:
                file.seek(max(0, self.path.stat().st_size - TAIL_BYTES))
                last = file.read()
            return last.decode(errors="replace").splitlines()[-HEAD_ROWS:]

    def _export(self) -> str:
        """Return what to do about a file that is no text: by its name, or by how it begins."""
        with self.open() as file:
            start = file.read(8)
        names = self.path.name.lower().removesuffix(".gz").rpartition(".")
        by_start = next((suffix for magic, suffix in _MAGIC.items() if start.startswith(magic)), "")
        return _EXPORTS.get(names[2]) or _EXPORTS.get(by_start) or _SAVE

    def head(self) -> list[tuple[int, list[str]]]:
        """The first rows: enough to see what kind of file it is."""
        return list(islice(self.rows(), HEAD_ROWS))

    def width(self, header_line: int) -> int:
        """Return how many cells most of the first rows below the titles have."""
        rows = (cells for line, cells in self.head() if line > header_line and any(cells))
        found = [len(cells) for cells in rows if not cells[0].startswith("#")]
        return max(found, key=found.count, default=0)

    def check_width(self, line: int, cells: Sequence[str], width: int) -> None:
        """Raise TableError if a row has cells too many, or, divided by spaces, too few: the others may have moved."""
        if len(cells) != width if self.dialect.delimiter == " " else any(cells[width:]):
            raise self.error(line, "", f"found {len(cells)} cells, allowed: {width}, as in the rows before")

    def number(self, text: str, line: int, column: str) -> float:
        """A finite number. Raises TableError."""
        mark = self.dialect.decimal
        plain = text.replace("_", "x")
        try:
            value = float(plain if mark == "." else plain.replace(".", "x").replace(",", "."))
        except ValueError:
            raise self.error(line, column, f"found {text!r}, allowed: a number such as 12 or 0{mark}5") from None
        if not math.isfinite(value):
            raise self.error(line, column, f"found {text!r}, allowed: a finite number")
        return value

    def falling(self, line: int, column: str, found: float, before: float) -> TableError:
        """The error of a time that is earlier than the one before."""
        what = f"found {found:g} after {before:g}, allowed: times that do not fall"
        return self.error(line, column, what, "put its rows in order, or save each recording as a file of its own")

    def error(self, line: int, column: str, what: str, remedy: str = "") -> TableError:
        where = f", column {column!r}" if column else ""
        return TableError(f"{self.path}, line {line}{where}: {what}", remedy=remedy or _CORRECT)


_SAVE = "save it as CSV in UTF-8"
_CORRECT = "correct or remove this line, or export the file again"
_BLANK = " \t\r\n\v\f\0\u00a0"
_MAGIC = {b"PK\x03\x04": "xlsx", b"\xd0\xcf\x11\xe0": "xls", b"SQLite f": "db", b"PAR1": "parquet", b"\x93NUMPY": "npy"}
_EXPORTS = {
    "pt5": "open it in Monsoon's PowerTool and export it: File, Export CSV",
    "pt4": "open it in Monsoon's PowerTool and export it: File, Export CSV",
    "jls": "open it in the Joulescope UI and export its statistics as CSV",
    "ppk2": "open it in nRF Connect's Power Profiler and export it: Export, CSV",
    "ppk": "open it in nRF Connect's Power Profiler and export it: Export, CSV",
    "otii": "open it in the Otii app and export the recording: Main power, CSV",
    "xlsx": "open it in a spreadsheet and save the sheet as CSV in UTF-8 (an archive: unpack it first)",
    "xls": "open it in a spreadsheet and save the sheet as CSV in UTF-8",
    "ods": "open it in a spreadsheet and save the sheet as CSV in UTF-8",
    "db": "it is a database: export its power as CSV; of Trepn by Analyze, Export to CSV",
    "parquet": "write it as CSV: pandas.read_parquet(...).to_csv(..., index=False)",
    "npy": "write it as CSV: numpy.savetxt(..., delimiter=',', header='time_s,power_w')",
    "npz": "write it as CSV: numpy.savetxt(..., delimiter=',', header='time_s,power_w')",
}
"""Files of programs -> how a table comes out of them."""


def cell(cells: Sequence[str], index: int) -> str:
    """A cell of a row; empty where the row is shorter."""
    return cells[index] if index < len(cells) else ""


def _dialect(lines: Sequence[str]) -> Dialect:
    """A mark that is in nearly every line divides cells, a tabulator or semicolon before a comma.

    Decimal commas are known by numbers such as `0,5` that fill a cell between such marks.
    """
    rows = [line for line in lines if line.strip() and not line.startswith("#")]
    for mark in ("\t", ";"):
        if rows and sum(mark in row for row in rows) >= COMMON * len(rows):
            cells = [cell.strip().strip('"') for row in rows for cell in row.split(mark)]
            commas = sum(_COMMA_NUMBER.fullmatch(cell) is not None for cell in cells)
            points = sum(_POINT_NUMBER.fullmatch(cell) is not None for cell in cells)
            return Dialect(mark, "," if commas > points else ".")
    if _is_spaced(rows):
        return Dialect(" ", ".")
    return Dialect(max(DELIMITERS, key=lambda mark: max((line.count(mark) for line in lines), default=0)), ".")


def _is_spaced(rows: Sequence[str]) -> bool:
    """Return whether spaces divide cells: there is no other mark, and rows have as many words as their titles."""
    words = [len(row.split()) for row in rows]
    return (
        len(rows) > 1
        and words[0] > 1
        and not any("," in row for row in rows)
        and words.count(words[0]) >= COMMON * len(rows)
    )
