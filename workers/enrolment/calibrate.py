"""Calibrate a battery gauge from load steps: unit, sign, refresh period, noise, gain. Pure functions.

The phone rests and works in turn while its gauge is read much more often than it has news. What the readings do then
tells everything but the gain; the charge counter, where it moved far enough, is a second opinion on that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
import numpy.typing as npt

from orchestrator.model import telemetry
from orchestrator.model.errors import StableError
from orchestrator.model.event import Phase, Power
from orchestrator.model.power import GaugeCalibration

from .refresh import find_refresh_ns, thin

UNITS_A = (1e-6, 1e-3)
"""Units of phones' nodes: uA as the kernel's documentation says, or mA."""
PHONE_W = 0.15, 30.0
"""The power of a phone with busy cores, which a reading is by one unit at most."""
NEWS_OF_A_STEP = 4
"""Fresh readings that each step must have."""
STEP_NEWS = 9
"""Fresh readings that a step should have, with those at its beginning that do not count."""
CHANGES = 6
"""Changes of the reading that the whole must have."""
GAIN_UNCERTAINTY = 0.05
"""The uncertainty of the gain of a gauge that nothing has confirmed."""
LEAST_GAIN_UNCERTAINTY = 0.02
"""The charge counter integrates the same shunt: it finds a wrong unit, not a wrong resistor."""
COUNTS = 20
"""Steps that the charge counter must have made to say something."""
SAME_UNIT = (0.5, 2.0)
"""Charge counter over integral: outside of this the counter has another unit, and says nothing."""
JUMP = 4.0
"""Differences of so many standard deviations are none of the gauge's noise."""
UNSTEADY = 4.0
"""Scatter under load over that at rest, or the other way round, from which one of them is not the gauge's alone."""
BY_CHANCE = 3.29
"""Standard errors that chance exceeds in one of a thousand: few readings scatter differently by chance alone."""
CLEAR = 0.75
"""Share of the readings under load that must lie beyond nine tenths of those at rest."""

Numbers = npt.NDArray[np.float64]


class CannotCalibrate(StableError):
    """The gauge cannot be calibrated as things are; says why, and what to do."""

    cause = "gauge"


class TooShort(CannotCalibrate):
    """The gauge is too slow for these steps; `needed_ns`: how long they should be, where that is known."""

    def __init__(self, message: str, needed_ns: int | None = None) -> None:
        super().__init__(message, remedy="take longer steps; a gauge that never changes needs an external meter")
        self.needed_ns = needed_ns


@dataclass(frozen=True)
class Steps:
    """Fresh readings of the gauge, raw, by what the phone did."""

    rest: tuple[Numbers, ...]
    load: tuple[Numbers, ...]

    @property
    def all(self) -> tuple[Numbers, ...]:
        return (*self.rest, *self.load)


def calibrate(power: Sequence[Power], phases: Sequence[Phase]) -> GaugeCalibration:
    """Read the load steps. Raises TooShort, CannotCalibrate."""
    told = [each for each in power if each.current_ua is not None]
    _check_usable(told)
    usual = median(abs(each.current_ua or 0) for each in told)
    readings = [each for each in told if telemetry.current(each.current_ua, usual) is not None]
    if not readings:
        raise CannotCalibrate(
            f"the gauge says {told[0].current_ua}, by which firmware means that it has no reading",
            remedy="use an external meter",
        )
    t_ns = np.array([each.t_ns for each in readings], dtype=np.int64)
    raw = np.array([each.current_ua for each in readings], dtype=np.float64)
    voltage = np.array([each.voltage_uv or 0 for each in readings], dtype=np.float64)
    refresh_ns = _refresh(t_ns, raw, voltage, phases)
    steps = _steps(t_ns, raw, phases, refresh_ns)
    sign, unit = _sign_and_unit(steps, _volts(readings))
    gain, opinion = _gain(readings, sign * unit)
    return GaugeCalibration(
        ampere_per_unit=unit,
        discharging_sign=sign,
        refresh_ns=refresh_ns,
        noise_a=_noise_raw(steps, raw) * unit,
        gain_uncertainty=gain,
        absolute=False,
        method=f"load steps{opinion}",
    )


def _check_usable(readings: Sequence[Power]) -> None:
    if not readings:
        raise CannotCalibrate(
            "no node of the battery's current can be read",
            remedy="use an external meter; `farm devices SERIAL` shows which nodes were refused",
        )
    contrary = sorted({each.status for each in readings if each.status not in ("", "Discharging")})
    if contrary:
        raise not_discharging(f"its status says {', '.join(contrary)}")


def not_discharging(why: str) -> CannotCalibrate:
    """A charger hides what the phone draws."""
    return CannotCalibrate(
        f"the battery is not discharging ({why}): the charger hides the load",
        remedy="cut the supply (Wi-Fi adb, or a switchable port in the wiring file), then `farm enrol`",
    )


def _refresh(t_ns: npt.NDArray[np.int64], raw: Numbers, voltage: Numbers, phases: Sequence[Phase]) -> int:
    if len(set(raw.tolist())) < 2:
        raise CannotCalibrate(
            f"the gauge said {raw[0]:g} all the time, at rest and under load: it is frozen",
            remedy="restart the phone; if it stays so, use an external meter",
        )
    refresh_ns = find_refresh_ns(t_ns, raw, least_changes=CHANGES)
    if refresh_ns is None:  # a quiet gauge prints the same again and again, but hardly current and voltage both
        refresh_ns = find_refresh_ns(t_ns, _numbered(raw, voltage), least_changes=CHANGES)
    if refresh_ns is None:
        raise TooShort("the gauge changed too rarely to find its refresh period")
    longest_ns = max((phase.end_ns - phase.start_ns for phase in phases), default=0)
    if longest_ns < (NEWS_OF_A_STEP + 2) * refresh_ns:
        raise TooShort(f"the gauge changes only every {refresh_ns / 1e9:.2f} s", STEP_NEWS * refresh_ns)
    return refresh_ns


def _numbered(*columns: Numbers) -> Numbers:
    """Each set of readings by a number of its own."""
    return np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1).astype(np.float64)


def _steps(t_ns: npt.NDArray[np.int64], raw: Numbers, phases: Sequence[Phase], refresh_ns: int) -> Steps:
    """Fresh readings of each step, without its beginning: the gauge is behind by a refresh period or two."""
    found: dict[bool, list[Numbers]] = {True: [], False: []}
    for phase in phases:
        inside = (t_ns >= phase.start_ns + 2 * refresh_ns) & (t_ns <= phase.end_ns)
        fresh = thin(t_ns[inside], raw[inside], refresh_ns)
        if len(fresh) >= NEWS_OF_A_STEP - 1:
            found[phase.phase == "load"].append(fresh)
    if not found[True] or not found[False]:
        raise TooShort("a step has too few fresh readings", STEP_NEWS * refresh_ns)
    return Steps(tuple(found[False]), tuple(found[True]))


def _sign_and_unit(steps: Steps, volts: float) -> tuple[int, float]:
    rest, load = np.concatenate(steps.rest), np.concatenate(steps.load)
    change = float(np.median(load) - np.median(rest))
    least = max(0.1 * abs(float(np.median(rest))), 3 * 1.4826 * float(np.median(np.abs(rest - np.median(rest)))))
    if abs(change) < least or _above(math.copysign(1.0, change), rest, load) < CLEAR:
        raise CannotCalibrate(
            f"the gauge does not follow the load: {np.median(rest):g} at rest, {np.median(load):g} with busy cores",
            remedy="end what else runs on the phone and cut its supply, then `farm enrol`",
        )
    sign = 1 if change > 0 else -1
    highest = sign * float(np.median(load))
    if highest <= 0:
        raise CannotCalibrate(
            f"a load moves the current from {np.median(rest):g} to {np.median(load):g}: something charges the battery",
            remedy="cut the supply, also a wireless one, then `farm enrol`",
        )
    return sign, _unit(highest, volts)


def _volts(readings: Sequence[Power]) -> float:
    known = [volts for each in readings if (volts := telemetry.cell_v(each.voltage_uv)) is not None]
    return median(known) if known else telemetry.USUAL_V


def _unit(highest: float, volts: float) -> float:
    """The one by which a phone at work draws what phones do, the nearer to their middle where both do."""
    low_w, high_w = PHONE_W
    middle = math.log(math.sqrt(low_w * high_w))
    unit = min(UNITS_A, key=lambda unit: abs(math.log(highest * unit * volts) - middle))
    if not low_w <= highest * unit * volts <= high_w:
        told = " or ".join(f"{highest * each * volts:.3g} W" for each in UNITS_A)
        raise CannotCalibrate(
            f"the gauge says {highest:g} under load, which is {told}: no phone draws that",
            remedy="use an external meter; report the phone, so that its unit becomes known",
        )
    return unit


def _above(side: float, rest: Numbers, load: Numbers) -> float:
    """Share of the readings under load that lie beyond nearly all at rest; a load may be as uneven as it likes."""
    return float(np.mean(side * load > np.quantile(side * rest, 0.9)))


def _noise_raw(steps: Steps, raw: Numbers) -> float:
    """Scatter of fresh readings about each other: of all; of the calmer kind where the other is unsteady itself.

    The smaller of two alike would be too small by a fifth. Never below what the gauge's own steps make.
    """
    quantum = float(np.min(np.diff(np.unique(raw))))
    kinds = [_differences(kind) for kind in (steps.rest, steps.load) if sum(len(step) for step in kind) >= CHANGES]
    if not kinds:
        return quantum / math.sqrt(12)
    each = [_scatter(kind, quantum) for kind in kinds]
    alike = max(each) <= max(UNSTEADY, _by_chance(*kinds)) * min(each)
    return max(_scatter(np.concatenate(kinds), quantum) if alike else min(each), quantum / math.sqrt(12))


def _by_chance(*kinds: Numbers) -> float:
    """Quotient of the scatters that chance hardly exceeds: the logarithm of a quotient of variances is nearly normal
    (Fisher 1924). Neighbours share readings, so that three differences count as two."""
    return math.exp(BY_CHANCE * math.sqrt(sum(1 / max(2 * len(kind) / 3 - 1, 1) for kind in kinds) / 2))


def _differences(kind: Sequence[Numbers]) -> Numbers:
    """Return differences of neighbours: a slow drift does not enter."""
    return np.concatenate([np.abs(np.diff(step)) for step in kind])


def _scatter(differences: Numbers, quantum: float) -> float:
    """Standard deviation of a reading; jumps are the load's, not the gauge's."""
    usual = max(JUMP * 1.4826 * float(np.median(differences)), JUMP * quantum)
    return float(np.sqrt(np.mean(differences[differences <= usual] ** 2) / 2))


def _gain(readings: Sequence[Power], ampere_per_raw: float) -> tuple[float, str]:
    """Uncertainty of the gain, and what the charge counter says of it."""
    counted = [(each, uah) for each in readings if (uah := telemetry.charge_uah(each.charge_uah)) is not None]
    moves = [abs(later - earlier) for (_, earlier), (_, later) in pairwise(counted)]
    count = min((move for move in moves if move), default=0)
    drop = counted[0][1] - counted[-1][1] if counted else 0
    if not count or abs(drop) < COUNTS * count:
        return GAIN_UNCERTAINTY, ""
    t_s = np.array([each.t_ns for each, _ in counted], dtype=np.float64) / 1e9
    current_a = np.array([each.current_ua or 0 for each, _ in counted], dtype=np.float64) * ampere_per_raw
    integral_uah = float(np.trapezoid(current_a, t_s)) / 3600 * 1e6
    ratio = drop / integral_uah if integral_uah else 0.0
    if not SAME_UNIT[0] <= ratio <= SAME_UNIT[1]:
        return GAIN_UNCERTAINTY, f"; the charge counter says {ratio:.3g} times as much: another unit"
    spread = math.hypot(ratio - 1.0, count / abs(drop), LEAST_GAIN_UNCERTAINTY)
    return spread, f"; the charge counter agrees within {abs(ratio - 1):.1%}"
