"""Any CSV of times and powers whose titles carry units: `time [s],power [mW]`, or current and voltage.

Lines that begin with `#` are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.exchange.delimited_table import Table

from .columns import Column, Layout, is_comment, read_columns, time_column
from .recording import Recording, Told
from .units import allowed, factor, parse_title, quantity_of

FORMAT = "csv"
HINT = "write e.g. `time [s],power [mW]` or `time [s],current [mA],voltage [V]` as its first line"


def read(table: Table, told: Told) -> list[Recording]:
    """The run of one file. Raises TableError."""
    return [read_columns(table, _layout(table, told), FORMAT)]


def _layout(table: Table, told: Told) -> Layout:
    found = next(((line, cells) for line, cells in table.head() if any(cells) and not is_comment(cells)), None)
    if found is None:
        raise table.error(1, "", "the file is empty", HINT)
    line, cells = found
    by_quantity = _by_quantity(table, line, cells, told)
    wanted = ("power",) if "power" in by_quantity else ("current", "voltage")
    if "voltage" not in by_quantity and told.volts is not None and "current" in by_quantity:
        wanted = ("current",)
    for quantity in ("time", *wanted):
        if quantity not in by_quantity:
            missing = "power (nor current and voltage)" if quantity != "time" else "time"
            raise table.error(line, "", f"no column of {missing} among {', '.join(filter(None, cells))}", HINT)
    at = _only(table, line, cells, "time", by_quantity["time"])
    time = time_column(table, line, at, cells[at], told)
    parts = tuple(_column(table, line, cells, quantity, by_quantity[quantity]) for quantity in wanted)
    if wanted == ("current",):
        return Layout(line, time, parts, told.volts, f"{told.volts:g} V")
    return Layout(line, time, parts)


def _by_quantity(table: Table, line: int, cells: Sequence[str], told: Told) -> dict[str, list[int]]:
    """The places of the columns of each quantity; of power the one that the user names."""
    found: dict[str, list[int]] = {}
    for index, text in enumerate(cells):
        if (quantity := quantity_of(parse_title(text))) is not None:
            found.setdefault(quantity, []).append(index)
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
    scale = factor(parse_title(text), quantity)
    if scale is None:
        unit = parse_title(text).unit
        what = f"unit {unit!r} is none of a {quantity}" if unit else "it has no unit"
        raise table.error(line, text, f"{what}; allowed: {allowed(quantity)}", "write the unit into the title")
    return Column(places[0], text, scale)
