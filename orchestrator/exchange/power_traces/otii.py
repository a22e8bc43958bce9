"""Otii Arc and Ace: a CSV a channel, as the Otii desktop app exports it: `Timestamp,Value` in `Main current - Arc.csv`.

What the channel is stands in the file's name. Times are in s and values in SI units: A, V and W, as Qoitech's API gives
them (qoitech/otii-tcp-client-python: channels mc, mv, mp). Of a current the voltage is taken from the file of the main
voltage beside it, between its readings in a straight line, or is what the user says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from orchestrator.exchange.delimited_table import Table
from orchestrator.model.errors import TableError

from .columns import Column, Layout, read_columns
from .points import Series
from .recording import Recording, Told
from .units import QUANTITIES

FORMAT = "otii"
CHANNELS = {"main current": "current", "main voltage": "voltage", "main power": "power"}


def matches(head: Sequence[tuple[int, list[str]]]) -> bool:
    """Return whether the first row is an Otii export's titles."""
    return bool(head) and [text.strip('" ').lower() for text in head[0][1][:2]] == ["timestamp", "value"]


def read(table: Table, told: Told) -> list[Recording]:
    """The run of one file of power, or of current. Raises TableError."""
    channel = _channel(table.path)
    unit = told.time_unit or "s"
    time = Column(0, "Timestamp", QUANTITIES["time"][unit])
    parts = (Column(1, table.path.stem, 1.0),)
    line = table.head()[0][0] if table.head() else 1
    if channel == "power":
        return [read_columns(table, Layout(line, time, parts), FORMAT)]
    if channel != "current":
        raise TableError(f"{table.path}: it holds the voltage alone", remedy="give the file of the main current")
    if told.volts is not None:
        return [read_columns(table, Layout(line, time, parts, told.volts, f"{told.volts:g} V"), FORMAT)]
    beside = _voltage_beside(table.path)
    volts = read_columns(Table(beside), Layout(line, time, (Column(1, beside.stem, 1.0),)), FORMAT)
    first_s = _first_s(Table(beside), time)

    def at(t_s: Series) -> Series:
        return np.interp(t_s - first_s, volts.t_s, volts.power_w)

    return [read_columns(table, Layout(line, time, parts, at, beside.name), FORMAT)]


def _channel(path: Path) -> str:
    name = path.stem.lower()
    found = next((what for words, what in CHANNELS.items() if name.startswith(words)), None)
    if found is None:
        raise TableError(
            f"{path}: its titles say neither what its values are nor their unit, and its name none of Otii's channels",
            remedy=f"keep the name that Otii gave it ({', '.join(CHANNELS)}), or write a title such as `power [W]`",
        )
    return found


def _voltage_beside(path: Path) -> Path:
    wanted = path.stem.lower().replace("current", "voltage", 1)
    found = next((each for each in path.parent.glob(f"*{path.suffix}") if each.stem.lower() == wanted), None)
    if found is None:
        raise TableError(
            f"{path}: it holds a current, and no file of the main voltage lies beside it",
            remedy="export the channel Main voltage or Main power too, or say the voltage: --volts 3.85",
        )
    return found


def _first_s(table: Table, time: Column) -> float:
    (line, cells), *_ = [row for row in table.head()[1:] if any(row[1])]
    return table.number(cells[0], line, time.title) * time.factor
