"""Monsoon power monitor: CSV of PyMonsoon and of PowerTool, main channel.

- PyMonsoon (`Monsoon/sampleEngine.py` of msoon/PyMonsoon): titles `Time(ms),Main(mA),USB(mA),Aux(mA),Main Voltage(V),
  USB Voltage(V)` of the channels that are switched on, a comma at the end of each row. The time column holds seconds,
  whatever its title says, and all samples of one USB transfer share a time; newer forks write `Time(s)`.
- PowerTool's export: `Time (s),Main Avg Power (mW)`, or `Main Avg Current (mA)` and `Main Avg Voltage (V)`; titles as
  public scripts read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestrator.exchange.delimited_table import Table

from .columns import Column, Layout, read_columns, time_column, titles_at
from .recording import Recording, Told, TraceDoubt, TraceDoubtCode
from .units import Title, factor, parse_title

FORMAT = "monsoon"
FASTEST_HZ = 5500.0
"""A little above the sampling rate of the instrument: what seems faster has its times in another unit."""

POWER = ("main avg power", "main power")
CURRENT = ("main", "main avg current", "main current")
VOLTAGE = ("main voltage", "main avg voltage")


def matches(head: Sequence[tuple[int, list[str]]]) -> bool:
    """Return whether the first row of titles is Monsoon's."""
    return any(_is_header(cells) for _, cells in head[:5])


def read(table: Table, told: Told) -> list[Recording]:
    """The run of one file. Raises TableError."""
    recording = read_columns(table, _layout(table, told), FORMAT)
    return [recording if told.time_unit else _in_seconds(recording)]


def _is_header(cells: Sequence[str]) -> bool:
    names = [parse_title(text).name.lower() for text in cells]
    return "time" in names and any(name in (*POWER, *CURRENT, *VOLTAGE, "usb", "aux") for name in names)


def _layout(table: Table, told: Told) -> Layout:
    found = next(((line, cells) for line, cells in table.head()[:5] if _is_header(cells)), None)
    if found is None:
        raise table.error(1, "", "no titles such as `Time(ms),Main(mA),Main Voltage(V)`")
    line, cells = titles_at(table, *found)
    titles = [(index, text, parse_title(text)) for index, text in enumerate(cells)]
    at, titled = next((index, text) for index, text, title in titles if title.name.lower() == "time")
    time = time_column(table, line, at, titled, told)
    power = _column(table, line, titles, POWER, "power")
    current, voltage = (_column(table, line, titles, *what) for what in ((CURRENT, "current"), (VOLTAGE, "voltage")))
    if power is not None:
        return Layout(line, time, (power,))
    if current is not None and voltage is None and told.volts is not None:
        return Layout(line, time, (current,), told.volts, f"{told.volts:g} V")
    if current is None or voltage is None:
        lacking = "current" if current is None else "voltage"
        remedy = "switch the channels MainCurrent and MainVoltage on, export Main Avg Power, or say --volts 3.85"
        raise table.error(
            line, "", f"no {lacking} of the main channel; it has {', '.join(filter(None, cells))}", remedy
        )
    return Layout(line, time, (current, voltage))


def _column(
    table: Table, line: int, titles: Sequence[tuple[int, str, Title]], names: Sequence[str], quantity: str
) -> Column | None:
    for index, text, title in titles:
        if title.name.lower() in names:
            scale = factor(title, quantity)
            if scale is None:
                raise table.error(line, text, f"unit {title.unit!r} is none of a {quantity}")
            return Column(index, text, scale)
    return None


def _in_seconds(recording: Recording) -> Recording:
    """PyMonsoon's times in s under the title `Time(ms)`: known by a rate that no Monsoon has."""
    facts = recording.facts
    if facts.duration_s <= 0 or facts.readings / facts.duration_s <= FASTEST_HZ or "in ms" not in recording.times:
        return recording
    rate = facts.readings / facts.duration_s
    detail = (
        f"by its title it has {rate:.3g} readings a second, more than a Monsoon takes: its times were read as seconds"
    )
    doubt = TraceDoubt(code=TraceDoubtCode.TIME_UNIT, detail=detail, file=str(recording.path))
    times = recording.times.replace("in ms", "in s")
    slower = replace(recording, t_s=recording.t_s * 1e3, facts=facts.slower(1e3), times=times)
    return slower.doubted(doubt)
