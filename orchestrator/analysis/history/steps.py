"""The steps of a series: settled change points, and what is new in the last nights.

A change point needs three values on each side (`change_points`). What the last two or three nights say is not waited
for: their mean is held against the level before, by Student's t with the series' own noise floor, corrected for both
numbers of nights. Such a step is told as not settled. One night alone is not told apart from a spike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from orchestrator.analysis.autoregression import resemblance, variance_of_mean
from orchestrator.analysis.change_points import LEVEL, SPIKE, Changes, change_points

LEAST_BEFORE = 5
"""Nights before what is new."""
AGREES = 0.7
"""Each new night lies at least so far, in units of their mean's step: else one of them is a spike."""
DIGITS = 9
"""Digits of logarithms: means of equal values are the same to so many, whatever arithmetic makes of the last."""
NEW = (2, 3)
"""Nights that are new."""


class Step(NamedTuple):
    """A step: the values from `place` on are higher by `size`."""

    place: int
    size: float
    p_value: float
    settled: bool


class Steps(NamedTuple):
    """The steps of one series of logarithms: a size of 0.05 is about 5 %."""

    noise: float
    """Standard deviation of a night."""
    floor: float
    """Least step that is told."""
    alike: float
    """Correlation of a night with the next one."""
    steps: tuple[Step, ...]


def steps_of(values: Sequence[float], level: float = LEVEL, alike: float | None = None) -> Steps:
    """The steps of values in order of time; a series without any has one at most as often as `level` says. `alike`:
    correlation of a night with the next one, None: it is learnt."""
    values = np.round(values, DIGITS).tolist()
    found = change_points(values, level, alike=alike)
    steps = [Step(each.index, each.after - each.before, each.p_value, not each.may_wander) for each in found.points]
    start = steps[-1].place if steps else 0
    new = _newest(np.asarray(values[start:], dtype=float), found, level)
    if new is not None:
        steps.append(new._replace(place=start + new.place))
    return Steps(found.noise, found.floor, found.alike, tuple(steps))


def resemblance_of(several: Iterable[Sequence[float]], level: float = LEVEL) -> float:
    """Correlation of a night with the next one that series have in common: of one alone it is hardly known."""
    parts: list[np.ndarray] = []
    for values in several:
        found = change_points(values, level, alike=0.0)
        if found.noise:
            parts += np.split(np.asarray(values) / found.noise, [point.index for point in found.points])
    return resemblance(parts)


def _newest(values: np.ndarray, known: Changes, level: float) -> Step | None:
    """The surest step in the last nights; None where none is sure."""
    found = [
        step for late in NEW if len(values) - late >= LEAST_BEFORE and (step := _late(values, late, known)) is not None
    ]
    best = min(found, key=lambda step: (step.p_value, step.place), default=None)
    return best if best is not None and best.p_value <= level else None


def _late(values: np.ndarray, late: int, known: Changes) -> Step | None:
    from scipy.special import stdtr

    before, after = values[:-late], values[-late:]
    middle = float(np.median(before))
    before = np.clip(before, middle - SPIKE * known.noise, middle + SPIKE * known.noise)
    size = float(np.mean(after)) - float(np.mean(before))
    nearest = float(np.min((after - middle) * np.sign(size)))
    if abs(size) <= known.floor or nearest < AGREES * abs(size):
        return None
    spread = max(known.noise, float(np.std(before, ddof=1)))
    if spread == 0:
        return Step(len(before), size, 0.0, False)
    error = spread * sqrt(sum(variance_of_mean(len(side), known.alike) for side in (before, after)))
    p_value = min(1.0, len(NEW) * 2 * float(stdtr(len(before) - 1, -abs(size) / error)))
    return Step(len(before), float(np.median(after)) - middle, p_value, False)
