"""Take from a gauge's readings those that can be, with their voltage, and tell what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrator.model import telemetry
from orchestrator.model.power import GaugeCalibration
from orchestrator.model.quantity import counted

NS = 1e-9
NAMED = 3
"""Values of each kind that are told."""
MINORITY = 0.5
"""The share of impossible powers from which on the unit is wrong, no single reading: the mean shows that."""


class Told(Protocol):
    """A reading as an agent tells it."""

    @property
    def t_ns(self) -> int: ...
    @property
    def current_ua(self) -> int | None: ...
    @property
    def voltage_uv(self) -> int | None: ...


@dataclass(frozen=True)
class LeftOut:
    """Readings that cannot be."""

    count: int = 0
    total: int = 0
    what: str = ""
    """The values left out, and how often."""

    @property
    def share(self) -> float:
        return self.count / self.total if self.total else 0.0

    @property
    def text(self) -> str:
        return f"{self.count} of {counted(self.total, 'reading')} cannot be and were left out: {self.what}"


NOTHING = LeftOut()


@dataclass(frozen=True, eq=False)
class GaugeReadings:
    """The readings that a gauge told and can have measured."""

    place: NDArray[np.int64]
    """The place of each among all that the agent told."""
    t_s: NDArray[Any]
    raw: NDArray[np.int64]
    """Current as printed."""
    volts: NDArray[np.float64]
    left_out: LeftOut
    assumed_v: str
    """The reason why the voltage was assumed; empty: the gauge told it."""


_latest: tuple[Sequence[Told], GaugeCalibration, GaugeReadings] | None = None
"""The last record's: a block's energy and most reasons against it begin with them."""


def gauge_readings(power: Sequence[Told], gauge: GaugeCalibration) -> GaugeReadings:
    """Return the usable readings of those that have a current."""
    global _latest
    if not ((latest := _latest) and latest[0] is power and latest[1] == gauge):
        _latest = latest = power, gauge, _usable(power, gauge)
    return latest[2]


def _usable(power: Sequence[Told], gauge: GaugeCalibration) -> GaugeReadings:
    told = [(at, each.t_ns, each.current_ua, each.voltage_uv) for at, each in enumerate(power)]
    known = [(at, t_ns, current, raw) for at, t_ns, current, raw in told if current is not None]
    usual = median(abs(current) for _, _, current, _ in known) if known else 0.0
    cells = [telemetry.cell_v(raw) for *_, raw in known]
    has_volts = any(volts is not None for volts in cells)
    good, wrong = list[int](), list[tuple[str, float | str]]()
    for index, (_, _, current, voltage) in enumerate(known):
        if telemetry.current(current, usual) is None:
            wrong.append(("current", current))
        elif has_volts and cells[index] is None and voltage is not None:
            wrong.append(("voltage", voltage))
        else:
            good.append(index)
    place, t_ns, raw = (np.array([known[index][column] for index in good], dtype=np.int64) for column in range(3))
    t_s, volts = t_ns * NS, _filled(t_ns, [cells[index] for index in good])
    power_w = raw * gauge.discharge_a_per_unit * volts
    fits = (power_w >= -telemetry.MOST_CHARGE_W) & (power_w <= telemetry.PHONE_W[1])
    if len(fits) and fits.mean() <= MINORITY:
        fits[:] = True
    wrong += [("power of W", round(value, 1)) for value in power_w[~fits].tolist()]
    said = next((voltage for *_, voltage in known if voltage is not None), None)
    assumed = "" if has_volts else f"it says {said}" if said is not None else "it tells none"
    return GaugeReadings(
        place[fits], t_s[fits], raw[fits], volts[fits], LeftOut(len(wrong), len(known), named(wrong)), assumed
    )


def _filled(t_s: NDArray[Any], cells: Sequence[float | None]) -> NDArray[np.float64]:
    """Voltages, between neighbours where one is missing; the usual one where all are."""
    known = np.array([volts is not None for volts in cells], dtype=bool)
    if not known.any():
        return np.full(len(t_s), telemetry.USUAL_V)
    there = np.array([volts for volts in cells if volts is not None])
    return there if known.all() else np.interp(t_s, t_s[known], there)


def named(wrong: Sequence[tuple[str, float | str]]) -> str:
    """Kinds and values, the most frequent first."""
    often = Counter(wrong).most_common(NAMED)
    more = [f"{len(set(wrong)) - NAMED} others"] if len(set(wrong)) > NAMED else []
    return ", ".join([*(f"{what} {_text(value)} ({count} x)" for (what, value), count in often), *more])


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"
