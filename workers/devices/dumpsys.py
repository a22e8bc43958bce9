"""Parse the output of Android's tools, as AOSP and Samsung print it. Pure functions.

Anything missing or unreadable is None or absent: a phone that prints less is not an error.
"""

from __future__ import annotations

import math
import re
from itertools import takewhile
from typing import NamedTuple

from orchestrator.model import telemetry

_PROPERTY = re.compile(r"^\[([^\]]+)\]: \[(.*)\]\r?$", re.MULTILINE)
_TEMPERATURE = re.compile(r"Temperature\{(?P<fields>.*)\}\s*$")
_FIELD = re.compile(r"(?:^|, )m(?P<name>[A-Z]\w*)=(?P<value>.*?)(?=, m[A-Z]\w*=|$)")
_HEADING = re.compile(r"\S.*:\s*$")

CPU, GPU, SKIN = 0, 1, 3
"""Types of sensors."""


class Battery(NamedTuple):
    """`dumpsys battery`."""

    percent: float | None = None
    temp_c: float | None = None
    charging: bool | None = None
    """True if any supply is connected; None where the phone names none."""
    updates_stopped: bool = False
    """Someone froze the figures (`dumpsys battery unplug`): they cannot be trusted."""


class Temperature(NamedTuple):
    """One sensor of the thermal HAL."""

    name: str
    type: int
    """0 CPU, 1 GPU, 2 battery, 3 skin ..."""
    temp_c: float
    status: int


class Thermal(NamedTuple):
    """`dumpsys thermalservice`, from the HAL only: the cached block was seen 30 C off."""

    status: int | None = None
    temperatures: tuple[Temperature, ...] = ()

    def warmest_c(self, kind: int) -> float | None:
        """Return the temperature of the warmest sensor of a type."""
        return max((each.temp_c for each in self.temperatures if each.type == kind), default=None)


class Wakefulness(NamedTuple):
    """`dumpsys power`."""

    wakefulness: str = ""
    """Awake, Dreaming, Dozing or Asleep; empty where the phone does not tell."""
    stays_on: bool = False
    """It is plugged in, and the setting for that keeps it awake."""
    off_after_ms: int | None = None
    """Time-out that holds now: the least of the setting's, a screen lock's and an administrator's."""


def parse_properties(text: str) -> dict[str, str]:
    """`getprop`: `[name]: [value]` a line."""
    return dict(_PROPERTY.findall(text))


def parse_battery(text: str) -> Battery:
    """`dumpsys battery`; Samsung's event log after `[EventLogBuffer]` holds old values and is not read."""
    fields: dict[str, str] = {}
    current = text.split("[EventLogBuffer]", 1)[0]
    for line in current.splitlines():
        name, colon, value = line.strip().partition(":")
        if colon:
            fields.setdefault(name, value.strip())
    level, scale = _number(fields.get("level")), _number(fields.get("scale")) or 100.0
    temp_dc = _number(fields.get("temperature"))
    powered = [value == "true" for name, value in fields.items() if name.endswith(" powered")]
    return Battery(
        percent=telemetry.percent(None if level is None else 100.0 * level / scale),
        temp_c=telemetry.celsius(None if temp_dc is None else temp_dc / 10.0),
        charging=any(powered) if powered else None,
        updates_stopped="UPDATES STOPPED" in current,
    )


def parse_thermal(text: str) -> Thermal:
    """`dumpsys thermalservice`: the status, and the block `Current temperatures from HAL:` alone."""
    status = re.search(r"^Thermal Status: ([0-9]{1,9})\b", text, re.MULTILINE)
    if "HAL Ready: false" in text:
        return Thermal(None if status is None else int(status[1]))
    _, _, rest = text.partition("Current temperatures from HAL:")
    rows = takewhile(lambda line: not _HEADING.match(line), rest.splitlines()[1:])
    temperatures = tuple(found for row in rows if (found := _temperature(row)) is not None)
    return Thermal(None if status is None else int(status[1]), temperatures)


def _temperature(row: str) -> Temperature | None:
    """A sensor's row; None for one that cannot be read, or says what no sensor in a phone can."""
    match = _TEMPERATURE.search(row)
    fields = dict(_FIELD.findall(match["fields"])) if match else {}
    temp_c, kind = telemetry.celsius(_number(fields.get("Value"))), fields.get("Type", "")
    if temp_c is None or not re.fullmatch(r"-?[0-9]{1,9}", kind):
        return None
    return Temperature(fields.get("Name", ""), int(kind), temp_c, whole(fields.get("Status", "")))


def parse_power(text: str) -> Wakefulness:
    """`dumpsys power`."""
    state = re.search(r"^\s*mWakefulness=(\w+)", text, re.MULTILINE)
    timeout = re.search(r"^\s*Screen off timeout: ([0-9]{1,18}) ms", text, re.MULTILINE)
    stays_on = re.search(r"^\s*mStayOn=true\b", text, re.MULTILINE) is not None
    return Wakefulness(state[1] if state else "", stays_on, int(timeout[1]) if timeout else None)


def parse_free_bytes(text: str) -> int | None:
    """`df -k FOLDER`: the available 1 KiB blocks in the last line (a long device name may wrap before it)."""
    fields = text.strip().splitlines()[-1].split() if text.strip() else []
    return whole(fields[-3]) * 1024 if len(fields) >= 5 and fields[-3].isdecimal() else None


def parse_memory_bytes(text: str) -> int:
    """`MemTotal` of /proc/meminfo; 0 where it is absent."""
    match = re.search(r"^MemTotal:\s+([0-9]{1,18}) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def whole(text: str) -> int:
    """A whole number that a phone printed; 0 for what is none, or so long that nobody can have counted it."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else 0


def _number(text: str | None) -> float | None:
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if math.isfinite(found) else None
