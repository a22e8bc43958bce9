"""Any CSV of times and powers whose titles carry units: `time [s],power [mW]`, or current and voltage.

Lines that begin with `#` are passed over, and so is what stands above the titles. Units may stand in a row of their own
below the titles, or behind each figure (`65.2 W`). Times may be dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np

from orchestrator.exchange.delimited_table import Table, cell
from orchestrator.model.errors import TableError

from .columns import (
    Column,
    Layout,
    in_words,
    is_comment,
    is_title,
    number,
    read_columns,
    time_column,
    titles_at,
    unit_behind,
)
from .recording import Recording, Told, TraceDoubt, TraceDoubtCode
from .units import allowed, factor, parse_title, plain_unit, quantity_of

FORMAT = "csv"
HINT = "write e.g. `time [s],power [mW]` or `time [s],current [mA],voltage [V]` as its first line"
OTHERS = {
    r"^# gpu\b": "this is `nvidia-smi dmon`: log nvidia-smi --query-gpu=timestamp,power.draw --format=csv -lms 100",
    r"\bRAM \d+/\d+MB\b": "this is tegrastats, whose lines are no table: write time and mW of one rail as CSV",
    r"\bPkgWatt\b": "this is turbostat: run it with --show Time_Of_Day_Seconds,PkgWatt, and name both with their units",
    r"(?i)\bAverage (Graphics|Socket).*Power\b": "this is rocm-smi: log time and power of one GPU as CSV with units",
}
"""Known outputs that are no table of times and powers -> what to do."""
WHICH = {
    "gpu",
    "device",
    "rail",
    "channel",
    "battery",
    "sensor",
    "uuid",
    "supply",
    "name",
    "serial",
    "phone",
    "index",
    "id",
}
MOST_NAMES = 16
"""The most names in a column that tells devices or rails apart: such words alone, few values that come in turn."""
DISAGREES = 0.2
"""Power and current times voltage may differ by such a share: they may be rounded, or read one after the other."""


def read(table: Table, told: Told, form: str = FORMAT) -> list[Recording]:
    """The run of one file. Raises TableError."""
    layout = _layout(table, told)
    return [read_columns(table, layout, form).doubted(*_disagreeing(table, layout))]


def _layout(table: Table, told: Told) -> Layout:
    rows = [(line, cells) for line, cells in table.head() if any(cells) and not is_comment(cells)]
    if not rows:
        raise table.error(1, "", "the file is empty", HINT)
    line, cells = titles_at(table, *next((row for row in (*rows, *_commented(table)) if is_title(row[1])), rows[0]))
    _check_one(table, line, cells)
    by_quantity = _by_quantity(table, line, cells, told)
    wanted = ("power",) if "power" in by_quantity else ("current", "voltage")
    if "voltage" not in by_quantity and told.volts is not None and "current" in by_quantity:
        wanted = ("current",)
    for quantity in ("time", *wanted):
        if quantity not in by_quantity:
            missing = "power (nor current and voltage)" if quantity != "time" else "time"
            hint = _hint(table)
            remedy = f"{hint}, or say the voltage of the current: --volts 3.85" if quantity == "voltage" else hint
            raise table.error(line, "", f"no column of {missing} among {', '.join(filter(None, cells))}", remedy)
    at = _only(table, line, cells, "time", by_quantity["time"])
    time = time_column(table, line, at, cells[at], told)
    parts = tuple(_column(table, line, cells, quantity, by_quantity[quantity]) for quantity in wanted)
    if wanted == ("current",):
        return Layout(line, time, parts, told.volts, f"{told.volts:g} V")
    return Layout(line, time, parts, also=_also(table, line, cells, by_quantity) if wanted == ("power",) else ())


def _also(table: Table, line: int, cells: Sequence[str], by_quantity: dict[str, list[int]]) -> tuple[Column, ...]:
    """One current and one voltage with their units, if there are such."""
    places = [by_quantity.get(quantity, []) for quantity in ("current", "voltage")]
    if any(len(each) != 1 or not parse_title(cells[each[0]]).unit for each in places):
        return ()
    return tuple(_column(table, line, cells, *each) for each in zip(("current", "voltage"), places, strict=True))


def _disagreeing(table: Table, layout: Layout) -> Iterator[TraceDoubt]:
    """Yield a doubt where current times voltage is another power, in the first rows."""
    if not layout.also:
        return
    power, current, voltage = np.array(list(_first(table, layout))).T
    mean_w, other_w = float(power.mean()), float((current * voltage).mean())
    if abs(abs(mean_w) - abs(other_w)) > DISAGREES * max(abs(mean_w), abs(other_w)):
        titles = " x ".join(column.title for column in layout.also)
        detail = f"its first rows have {mean_w:.3g} W in {layout.named}, and {other_w:.3g} W by {titles}"
        yield TraceDoubt(code=TraceDoubtCode.POWER_DISAGREES, detail=detail, file=str(table.path))


def _hint(table: Table) -> str:
    """Return what to do about a table without the columns: by the program whose output it looks like."""
    text = "\n".join(" ".join(cells) for _, cells in table.head())
    return next((hint for pattern, hint in OTHERS.items() if re.search(pattern, text, re.MULTILINE)), HINT)


def _commented(table: Table) -> Iterator[tuple[int, list[str]]]:
    """Titles behind a comment's mark, as `numpy.savetxt` writes them."""
    for line, cells in table.head():
        if any(cells) and is_comment(cells):
            yield line, in_words(cells)


def _check_one(table: Table, line: int, cells: Sequence[str]) -> None:
    """Raises TableError where a column tells several devices, batteries or rails apart."""
    for index, title in enumerate(cells):
        words = set(re.findall(r"[a-z]+", title.lower()))
        rows = [row for at, row in table.head() if at > line and any(row) and not is_comment(row)]
        values = [cell(row, index) for row in rows]
        found, turns = sorted(set(values)), sum(one != other for one, other in pairwise(values))
        if words and words <= WHICH and 1 < len(found) <= MOST_NAMES and 2 * turns >= len(values) >= 2 * len(found):
            remedy = f"keep the rows of one of them: {', '.join(found)}"
            raise table.error(line, title, f"it holds {len(found)} of them: {', '.join(found)}", remedy)


def _first(table: Table, layout: Layout) -> Iterator[list[float]]:
    """Power, current and voltage of the first rows that have all three, and a row of zeros, so that there is one."""
    yield [0.0, 0.0, 0.0]
    for line, cells in table.head():
        if line > layout.header_line and any(cells):
            with suppress(TableError):
                yield [number(table, line, cells, column) for column in (*layout.parts, *layout.also)]


def _by_quantity(table: Table, line: int, cells: Sequence[str], told: Told) -> dict[str, list[int]]:
    """The places of the columns of each quantity, the only one with a unit or all; of power the one that the user
    names."""
    found: dict[str, list[int]] = {}
    for index, text in enumerate(cells):
        if (quantity := quantity_of(parse_title(text))) is not None:
            found.setdefault(quantity, []).append(index)
    for quantity, places in found.items():
        named = [place for place in places if parse_title(cells[place]).unit]
        found[quantity] = named if len(named) == 1 else places
    if told.column is not None:
        if told.column not in cells:
            raise table.error(line, told.column, f"no such column among {', '.join(filter(None, cells))}")
        found["power"] = [list(cells).index(told.column)]
    return found


def _only(table: Table, line: int, cells: Sequence[str], quantity: str, places: Sequence[int]) -> int:
    if len(places) > 1:
        names = " and ".join(repr(cells[place]) for place in places)
        remedy = "keep one of them" + (f", or say which: --column {cells[places[0]]!r}" if quantity == "power" else "")
        raise table.error(line, cells[places[0]], f"{names} are both a {quantity}", remedy)
    return places[0]


def _column(table: Table, line: int, cells: Sequence[str], quantity: str, places: Sequence[int]) -> Column:
    text = cells[_only(table, line, cells, quantity, places)]
    title, behind = parse_title(text), unit_behind(table, line, places[0])
    unit = title.unit or plain_unit(behind)
    scale = factor(replace(title, unit=unit), quantity)
    if scale is not None and behind and factor(replace(title, unit=plain_unit(behind)), quantity) != scale:
        raise table.error(line, text, f"its title says {unit!r}, its figures {behind!r}", "correct one of them")
    if scale is None:
        what = f"unit {unit!r} is none of a {quantity}" if unit else "it has no unit"
        raise table.error(line, text, f"{what}; allowed: {allowed(quantity)}", "write the unit into the title")
    return Column(places[0], text, scale, behind=behind)
