"""Readings of a phone's sampler, kept lean, as there are many; and whether a single one can be, and in which unit.

Drivers and firmware print the ends of their integers, an error's number or a parked value where they know nothing; a
battery's cell and a phone's power have narrow bounds, by which a unit shows as well.
"""

from __future__ import annotations

import math
from typing import NamedTuple

MARKS = frozenset(
    (
        *(sign * (1 << bits) + less for bits in (15, 16, 31, 32, 63, 64) for sign in (-1, 1) for less in (-1, 0, 1)),
        *(sign * ((1 << 31) // 1000) for sign in (-1, 1)),
    )
)
"""The ends of integers, by which firmware says that it has no reading; of 32 bits also in thousandths."""
ERRORS = frozenset((-5, -11, -16, -19, -22, -61, -95, -110, -121))
"""Numbers of errors (EIO, EAGAIN, ... EINVAL, ENODATA) that some drivers print as a value."""
FINE = 5000
"""A current whose readings are usually that large stands in uA, of which no gauge tells single ones."""
CELL_V = 2.5, 5.0
CELLS_IN_ROW = 2
USUAL_V = 3.8
"""The voltage of a battery that does not tell its own ..."""
USUAL_V_UNCERTAINTY = 0.08
"""... and the standard uncertainty of it, as a share: a cell works between 3.4 and 4.4 V."""
PHONE_W = 0.05, 20.0
"""The power of a phone at work; no phone draws more at any moment, and none less with a processor awake."""
MOST_CHARGE_W = 200.0
TEMP_C = -30.0, 125.0
"""No phone works outside; sensors that know nothing are parked at the bounds and beyond, or at 0."""
MOST_MAH = 30_000
MOST_UAH = 1e8


class Reading(NamedTuple):
    """The sampler's readings at a moment of the phone's clock; None: the phone does not tell."""

    t_ns: int
    current_ua: int | None
    voltage_uv: int | None
    status: str
    temp_c: float | None
    """The temperature of the battery."""
    skin_c: float | None
    cpu_khz: int | None
    """The fastest core's clock."""
    gpu_hz: int | None


def current(raw: int | None, usual: float = 0.0) -> int | None:
    """A current as the node prints it; None for what is none. `usual`: size of the gauge's other readings."""
    if raw is None or raw in MARKS or (raw in ERRORS and usual >= FINE):
        return None
    return raw


def cell_v(raw: int | None) -> float | None:
    """The voltage of one cell, or of two in a row, by a node in uV or mV; None for what is none."""
    for unit in (1e-6, 1e-3):
        if raw is not None and CELL_V[0] <= raw * unit <= CELL_V[1] * CELLS_IN_ROW:
            return raw * unit
    return None


def celsius(value: float | None) -> float | None:
    """A temperature in or on a phone; None for what is none."""
    return value if value and TEMP_C[0] < value < TEMP_C[1] else None


def celsius_of_tenths(value: int | None) -> float | None:
    """The same of a node in tenths of a degree."""
    return celsius(None if value is None else value / 10)


def percent(value: float | None) -> float | None:
    """A battery's level; None for what is none."""
    return value if value is not None and 0.0 <= value <= 100.0 else None


def charge_uah(raw: int | None) -> int | None:
    """A battery's charge, by a node in uAh or mAh; None for what is none."""
    if raw is None or raw in MARKS or abs(raw) > MOST_UAH:
        return None
    return raw * 1000 if 0 < raw <= MOST_MAH else raw


def is_power(value: float) -> bool:
    """Return whether a phone, on its battery or charged, can have this power."""
    return math.isfinite(value) and -MOST_CHARGE_W <= value <= PHONE_W[1]
