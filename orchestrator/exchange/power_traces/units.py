"""Titles of columns with units: `power [mW]`, `Main Voltage(V)`, `time_s`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

QUANTITIES: dict[str, dict[str, float]] = {
    "time": {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0},
    "power": {"nw": 1e-9, "uw": 1e-6, "mw": 1e-3, "w": 1.0, "kw": 1e3},
    "current": {"na": 1e-9, "ua": 1e-6, "ma": 1e-3, "a": 1.0},
    "voltage": {"uv": 1e-6, "mv": 1e-3, "v": 1.0},
}
"""Factor to s, W, A and V of each unit, in lower case."""

_PREFIXES = {"": "", "milli": "m", "micro": "u", "nano": "n", "kilo": "k"}
_BASES = {
    **dict.fromkeys(("second", "seconds", "secs"), "s"),
    **dict.fromkeys(("watt", "watts"), "w"),
    **dict.fromkeys(("amp", "amps", "ampere", "amperes"), "a"),
    **dict.fromkeys(("volt", "volts"), "v"),
}
WORDS = {prefix + base: short + unit for prefix, short in _PREFIXES.items() for base, unit in _BASES.items()} | {
    **dict.fromkeys(("msec", "msecs", "millis"), "ms"),
    **dict.fromkeys(("usec", "usecs", "micros"), "us"),
    **dict.fromkeys(("nsec", "nsecs", "nanos"), "ns"),
    **dict.fromkeys(("minute", "minutes", "mins"), "min"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), "h"),
}
"""Units that are written out."""

NAMES: dict[str, tuple[str, ...]] = {
    "time": ("time", "timestamp", "datetime", "t", "elapsed", "seconds", "milliseconds"),
    "power": ("power", "p", "pbus", "watts", "watt", "milliwatts"),
    "current": ("current", "i", "ibus", "amps", "amperes", "milliamps"),
    "voltage": ("voltage", "u", "v", "vbus", "volt", "volts", "millivolts"),
}
"""Words by which a column of each quantity is known."""

_BRACKETS = re.compile(r"^(?P<name>.*?)\s*[\[(]\s*(?P<unit>[^\])]*?)\s*[\])]\s*(?P<rest>.*)$")

MEGA = ("MW", "MA", "MV")
"""No phone has those: they are no milli, unless all of the title is in capitals."""


@dataclass(frozen=True)
class Title:
    """A column's title, taken apart."""

    name: str
    unit: str
    rest: str = ""
    """The text after the unit, e.g. `(Raw)`."""


def parse_title(text: str) -> Title:
    """`Battery Power* [uW] (Raw)` -> name, unit, rest; `power_mw` too where the last word is a unit."""
    match = _BRACKETS.match(text)
    if match is not None:
        name = match["name"].strip()
        mega = match["unit"] in MEGA and not name.isupper()
        return Title(name, match["unit"] if mega else plain_unit(match["unit"]), match["rest"].strip())
    for mark in ("_", "/", ","):
        name, _, unit = text.rpartition(mark)
        if name.strip() and any(plain_unit(unit) in units for units in QUANTITIES.values()):
            return Title(name.strip(), plain_unit(unit))
    return Title(text.strip(), WORDS.get(text.strip().lower(), ""))


def quantity_of(title: Title) -> str | None:
    """`time`, `power`, `current` or `voltage`, by the words of the name; None for anything else."""
    words = re.findall(r"[a-z]+", title.name.lower())
    return next((quantity for quantity, names in NAMES.items() if any(word in names for word in words)), None)


def with_units(titles: Sequence[str], below: Sequence[str]) -> list[str] | None:
    """Titles whose units stand in the row below: `Time,Power` above `(s),(mW)`; None where that row is no such one."""
    units = [text.strip("[]() ") for text in below]
    known = [not unit or any(plain_unit(unit) in of for of in QUANTITIES.values()) for unit in units]
    if not all(known) or not any(units) or any(parse_title(text).unit for text in titles):
        return None
    pairs = zip_longest(titles, units, fillvalue="")
    return [f"{title} [{unit}]" if title and unit else title for title, unit in pairs]


def factor(title: Title, quantity: str) -> float | None:
    """Return the factor to s, W, A or V; None where the unit is absent or not of this quantity."""
    return QUANTITIES[quantity].get(title.unit)


def allowed(quantity: str) -> str:
    """Return what a title may say, for an error."""
    spelled = {"nw": "nW", "uw": "uW", "mw": "mW", "w": "W", "kw": "kW", "na": "nA", "ua": "uA", "ma": "mA", "a": "A"}
    spelled |= {"uv": "uV", "mv": "mV", "v": "V"}
    return ", ".join(f"`{quantity} [{spelled.get(unit, unit)}]`" for unit in QUANTITIES[quantity])


def plain_unit(unit: str) -> str:
    """Return a unit as it stands in `QUANTITIES`."""
    plain = unit.replace("µ", "u").replace("μ", "u").strip().lower()
    return WORDS.get(plain, plain)
