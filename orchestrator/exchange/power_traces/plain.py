"""Any CSV of times and powers whose titles carry units: `time [s],power [mW]`, or current and voltage.

Lines that begin with `#` are passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.exchange.delimited_table import Table

from .columns import Column, Layout, is_comment, read_columns
from .recording import Recording
from .units import allowed, factor, parse_title, quantity_of

FORMAT = "csv"
HINT = "write e.g. `time [s],power [mW]` or `time [s],current [mA],voltage [V]` as its first line"


def read(table: Table) -> list[Recording]:
    """The run of one file. Raises TableError."""
    return [read_columns(table, _layout(table), FORMAT)]


def _layout(table: Table) -> Layout:
    found = next(((line, cells) for line, cells in table.head() if any(cells) and not is_comment(cells)), None)
    if found is None:
        raise table.error(1, "", "the file is empty", HINT)
    line, cells = found
    by_quantity: dict[str, list[int]] = {}
    for index, text in enumerate(cells):
        if (quantity := quantity_of(parse_title(text))) is not None:
            by_quantity.setdefault(quantity, []).append(index)
    for quantity in ("time", "power") if "power" in by_quantity else ("time", "current", "voltage"):
        if quantity not in by_quantity:
            wanted = "power (nor current and voltage)" if quantity != "time" else "time"
            raise table.error(line, "", f"no column of {wanted} among {', '.join(filter(None, cells))}", HINT)
    if "power" in by_quantity:
        parts: tuple[str, ...] = ("power",)
    else:
        parts = ("current", "voltage")
    time, *others = (_column(table, line, cells, quantity, by_quantity[quantity]) for quantity in ("time", *parts))
    return Layout(line, time, tuple(others))


def _column(table: Table, line: int, cells: Sequence[str], quantity: str, places: Sequence[int]) -> Column:
    text = cells[places[0]]
    if len(places) > 1:
        names = " and ".join(repr(cells[place]) for place in places)
        raise table.error(line, text, f"{names} are both a {quantity}", "keep one of them")
    scale = factor(parse_title(text), quantity)
    if scale is None:
        unit = parse_title(text).unit
        what = f"unit {unit!r} is none of a {quantity}" if unit else "it has no unit"
        raise table.error(line, text, f"{what}; allowed: {allowed(quantity)}", "write the unit into the title")
    return Column(places[0], text, scale)
