"""Joulescope's statistics as CSV: `#time,current,voltage,power,charge,energy`, in s, A, V, W, C and J.

The titles name no units; the Joulescope UI and pyjoulescope's `statistics` write SI units (jetperch/pyjoulescope_ui,
`_record_statistics_item`: the means of each window, time from the start of the recording).
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.exchange.delimited_table import Table

from .columns import Column, Layout, read_columns
from .recording import Recording, Told
from .units import QUANTITIES

FORMAT = "joulescope"
TITLES = ("time", "current", "voltage", "power")


def matches(head: Sequence[tuple[int, list[str]]]) -> bool:
    """Return whether the first row is Joulescope's titles, all without a unit."""
    return bool(head) and _titles(head[0][1])[: len(TITLES)] == list(TITLES)


def read(table: Table, told: Told) -> list[Recording]:
    """The run of one file. Raises TableError."""
    head = table.head()
    titles = _titles(head[0][1]) if head else []
    missing = [name for name in ("time", "power") if name not in titles]
    if missing:
        raise table.error(1, "", f"no column {' nor '.join(missing)}; titles are #{','.join(TITLES)},charge,energy")
    unit = told.time_unit or "s"
    time = Column(titles.index("time"), "time", QUANTITIES["time"][unit])
    return [read_columns(table, Layout(head[0][0], time, (Column(titles.index("power"), "power", 1.0),)), FORMAT)]


def _titles(cells: Sequence[str]) -> list[str]:
    return [text.strip().lstrip("#").strip().lower() for text in cells]
