"""The unit of a column of times: as the user says, as its title says, or the only one that makes sense.

A title without a unit leaves the figures. Times since 1970 show it by their size (between 2001 and 2096). Others show
it where one unit alone gives a trace of a second to a week that was read between once in 20 s and 2 million times a
second, which no meter exceeds (a Joulescope's 2 MHz). Where several units do, the user must say which.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import pairwise

from orchestrator.exchange.delimited_table import Table, cell

from .units import QUANTITIES, Title

UNITS = {unit: QUANTITIES["time"][unit] for unit in ("s", "ms", "us", "ns")}
EPOCH_S = 1e9, 4e9
DURATION_S = 1.0, 7 * 86400.0
PERIOD_S = 0.5e-6, 20.0


def time_unit(table: Table, line: int, index: int, title: Title, told: str | None) -> tuple[str, bool]:
    """The unit, and whether it was found by the figures. Raises TableError."""
    if told is not None:
        return told, False
    if title.unit in QUANTITIES["time"]:
        return title.unit, False
    if title.unit:
        raise table.error(line, title.name, f"unit {title.unit!r} is none of a time", _STATE)
    found = _plausible(*_figures(table, line, index))
    if len(found) == 1:
        return found[0], True
    could = f"it could be {' or '.join(found)}" if found else "its figures fit none"
    raise table.error(line, title.name, f"it has no unit, and {could}", _STATE)


_STATE = "write the unit into the title, `time [ms]`, or say it: --time-unit ms"


def _plausible(first: float, step: float, last: float) -> list[str]:
    epoch = [unit for unit, factor in UNITS.items() if EPOCH_S[0] <= first * factor < EPOCH_S[1]]
    if len(epoch) == 1:
        return epoch
    return [
        unit
        for unit, factor in UNITS.items()
        if DURATION_S[0] <= (last - first) * factor <= DURATION_S[1] and PERIOD_S[0] <= step * factor <= PERIOD_S[1]
    ]


def _figures(table: Table, line: int, index: int) -> tuple[float, float, float]:
    """The first time, the median step of the first rows, and the last time; nothing plausible where there are few."""
    rows = [cells for at, cells in table.head() if at > line]
    times = _times(table, rows, index)
    steps = sorted(later - time for time, later in pairwise(times) if later > time)
    last = _times(table, list(csv.reader(table.tail(), delimiter=table.dialect.delimiter)), index)
    if not steps or not last:
        return 0.0, 0.0, 0.0
    return times[0], steps[len(steps) // 2], last[-1]


def _times(table: Table, rows: Sequence[Sequence[str]], index: int) -> list[float]:
    """Return the times that read as numbers."""
    found = []
    for cells in rows:
        try:
            found.append(float(cell(cells, index).strip().replace(table.dialect.decimal, ".")))
        except ValueError:
            continue
    return found
