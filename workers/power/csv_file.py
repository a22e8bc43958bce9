"""Follow the growing CSV file of any meter."""

from __future__ import annotations

import csv
import io
import math
import re
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from orchestrator.model.base import Model, rule
from orchestrator.model.errors import Unsupported
from orchestrator.model.quantity import counted

from .base import MeterLost, ReadingLost
from .clock_mapping import ahead_s
from .streamed import Batch, StreamedMeter

PAUSE_S = 0.02
HEAD_BYTES = 1 << 16
"""The bytes within which the line with the columns' names is looked for."""
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
WATTS = {"W": 1.0, "mW": 1e-3, "uW": 1e-6}
AMPERES = {"A": 1.0, "mA": 1e-3, "uA": 1e-6}
VOLTS = {"V": 1.0, "mV": 1e-3, "uV": 1e-6}


class CsvOptions(Model):
    """`meter: {csv: {...}}` of the wiring file. A column is its name in the file's head, or its number from 1."""

    path: Path
    time: str = ""
    """Column of the time; empty: a line's time is that of its arrival."""
    time_unit: Literal["s", "ms", "us", "ns"] = "s"
    time_is: Literal["own", "unix"] = "own"
    """`own`: the meter's own clock, from anywhere; `unix`: this host's wall clock."""
    power: str = ""
    power_unit: Literal["W", "mW", "uW"] = "W"
    current: str = ""
    current_unit: Literal["A", "mA", "uA"] = "A"
    voltage: str | float = ""
    """Column of the voltage, or the voltage itself."""
    voltage_unit: Literal["V", "mV", "uV"] = "V"
    delimiter: str = Field(default=",", min_length=1, max_length=1)
    is_mean: bool = False
    """True if a line is the mean since the line before instead of a momentary reading."""
    gain_uncertainty: float = Field(default=0.01, gt=0)

    @rule
    def _tells_power(self) -> None:
        if not self.power and not (self.current and self.voltage):
            raise ValueError("name the column `power`, or `current` and `voltage`")


class _Follower:
    """A `Stream`."""

    def __init__(self, options: CsvOptions) -> None:
        self._options = options
        self._file: io.BufferedReader | None = None
        self._columns: dict[str, int] = {}
        self._width = 0
        """Cells of the head, or of the first line; 0: not known yet."""
        self._partial = b""
        self._lines = 0
        """The lines of the file before those that are read next."""
        self._last_s = -np.inf

    def open(self) -> None:
        """Lines that are there already are not of this block."""
        self._columns, self._width = find_columns(self._options)
        self._partial, self._last_s = b"", -np.inf
        self._file = self._options.path.open("rb")
        self._lines = sum(chunk.count(b"\n") for chunk in iter(partial(self._file.read, 1 << 20), b""))

    def read(self) -> Batch | None:
        time.sleep(PAUSE_S)
        assert self._file is not None
        if self._options.path.stat().st_size < self._file.tell():
            raise MeterLost(f"{self._options.path} became shorter", remedy="let the meter write one file in a block")
        content = self._partial + self._file.read()
        host_ns = time.monotonic_ns()
        whole, newline, self._partial = content.rpartition(b"\n")
        if not newline:
            return None
        reader = csv.reader(io.StringIO(whole.decode(errors="replace")), delimiter=self._options.delimiter)
        rows = [(self._lines + reader.line_num, row) for row in reader if row]
        self._lines += whole.count(b"\n") + 1
        return self._batch(rows, host_ns)

    def _batch(self, rows: list[tuple[int, list[str]]], host_ns: int) -> Batch | None:
        self._check_width(rows)
        power_w = [self._power_w(row) for row in rows]
        own_s = [self._time_s(row, host_ns) for row in rows]
        pairs = list(zip(own_s, power_w, strict=True))
        if pairs and not self._options.time:  # lines that arrive together are one reading
            pairs = [(own_s[-1], sum(power_w) / len(power_w))]
        else:
            self._check_order([line for line, _ in rows], own_s)
        pairs = [(b, p) for a, (b, p) in zip([self._last_s, *own_s], pairs, strict=False) if b > a]
        if not pairs:
            return None
        self._last_s = pairs[-1][0]
        times, watts = zip(*pairs, strict=True)
        exact = not self._options.time or self._options.time_is == "unix"
        return Batch(np.array(times), np.array(watts), host_ns, exact)

    def _check_order(self, lines: list[int], own_s: list[float]) -> None:
        """Raises ReadingLost for a line whose time is before that of a line above it."""
        for line, before_s, time_s in zip(lines, [self._last_s, *own_s], own_s, strict=False):
            if time_s < before_s:
                what = f"the meter's time goes back by {before_s - time_s:g} s"
                remedy = "leave the meter's clock alone while the farm measures, and write a point in decimals"
                raise ReadingLost(f"{self._options.path}, line {line}: {what}", remedy=remedy)

    def _check_width(self, rows: list[tuple[int, list[str]]]) -> None:
        """Raises ReadingLost for a line with more cells than others: what divides cells may stand in its figures."""
        for line, row in rows:
            count = len(row) - (row[-1:] == [""])
            self._width = self._width or count
            if count > self._width:
                wrote = f"{self._options.delimiter.join(row)[:80]!r}"
                what = f"the meter wrote {counted(count, 'cell')}, not {self._width}: {wrote}"
                remedy = "let the meter's program write a point in its decimals, and nothing but rows of figures"
                raise ReadingLost(f"{self._options.path}, line {line}: {what}", remedy=remedy)

    def _time_s(self, row: tuple[int, list[str]], host_ns: int) -> float:
        if not self._options.time:
            return host_ns / 1e9
        own_s = self._number(row, "time") * SECONDS[self._options.time_unit]
        return own_s - ahead_s(time.time_ns) if self._options.time_is == "unix" else own_s

    def _power_w(self, row: tuple[int, list[str]]) -> float:
        options = self._options
        if options.power:
            return self._number(row, "power") * WATTS[options.power_unit]
        fixed = isinstance(options.voltage, float | int)
        voltage = float(options.voltage) if fixed else self._number(row, "voltage")
        return self._number(row, "current") * AMPERES[options.current_unit] * voltage * VOLTS[options.voltage_unit]

    def _number(self, row: tuple[int, list[str]], name: str) -> float:
        line, cells = row
        index = self._columns[name]
        text = cells[index].strip() if index < len(cells) else ""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isfinite(value):
            return value
        what = f"has {counted(len(cells), 'cell')}" if index >= len(cells) else f"says {text!r}"
        raise ReadingLost(f"{self._options.path}, line {line}: the meter {what} in column `{name}`", remedy=_why(text))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


_NONE = re.compile(r"(?i)[-+[(<]*(nan|inf|infinity|n/?a|not .*|null|none|overload|ol|err.*)?[])>.-]*")
"""The texts that meters' programs write where they have no reading."""


def _why(text: str) -> str:
    """Return what to do about a cell that is no number."""
    if re.fullmatch(r"[-+]?\d+,\d+", text):
        return "let the meter's program write a point in its decimals"
    if text and not re.fullmatch(
        r"(?i)[-+[(<]*(nan|inf|infinity|n/?a|not .*|null|none|overload|ol|err.*)?[])>.-]*", text
    ):
        return "let the meter's program write nothing but rows of figures while the farm measures"
    return "the meter had no reading then: look at its range, its cable and its program"


def find_columns(options: CsvOptions) -> tuple[dict[str, int], int]:
    """Option -> index of its column; and how many columns the head has (0: there is none). Raises Unsupported naming
    what the file has."""
    wanted = {name: getattr(options, name) for name in ("time", "power", "current", "voltage")}
    named = {name: column for name, column in wanted.items() if isinstance(column, str) and column}
    numbers = {name: int(column) - 1 for name, column in named.items() if column.isdigit()}
    if len(numbers) == len(named):
        return numbers, 0
    head = _head(options)
    for row in csv.reader(io.StringIO(head), delimiter=options.delimiter):
        titles = [title.strip() for title in row]
        if all(name in numbers or column in titles for name, column in named.items()):
            places = {name: titles.index(column) for name, column in named.items() if name not in numbers}
            return numbers | places, len(titles)
    raise Unsupported(
        f"{options.path} has no line with the columns {', '.join(named.values())}; it begins with {head[:120]!r}",
        remedy="start the meter's program before the farm measures, and name its columns in the wiring file",
    )


def _head(options: CsvOptions) -> str:
    try:
        with options.path.open("rb") as file:
            return file.read(HEAD_BYTES).decode(errors="replace")
    except OSError as e:
        raise Unsupported(f"{options.path}: {e.strerror}", remedy="start the program that writes it") from e


def csv_file(options: Mapping[str, Any]) -> StreamedMeter:
    """Raises Unsupported where the file lacks the columns, ValidationError for wrong options."""
    chosen = CsvOptions.model_validate(options)
    find_columns(chosen)
    name = f"csv {chosen.path.name}"
    return StreamedMeter(_Follower(chosen), name, chosen.gain_uncertainty, means=chosen.is_mean)
