"""The factor by which an inference takes longer at a temperature than on the cool phone, as steps.

Medians by half a degree, made non-decreasing by isotonic regression (pool adjacent violators; Barlow, Bartholomew,
Bremner and Brunk, 1972), because heat makes no phone faster. Levels that differ by less than `CHANGE` are one. A step
is put where it tells the slower inferences from the faster ones best.

A phone that throttles may be held at the step to its next level by just that, so that it is hardly ever slower. Such a
step is seen in the hottest inferences alone, some of which are slower than those of a little less.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np

from orchestrator.energy.throttling import CHANGE
from orchestrator.queueing.spec import ThrottleStep

from .history import Column, History

BIN_C = 0.5
FEWEST_IN_BIN = 10
NEAR_C = 1.0
"""A step lies at most so far from the edge of its bin."""
TIP_C = 0.2
"""The range of temperatures below the hottest reading."""
FEWEST_SLOW = 5
RARE = 0.99
"""Quantile of what inferences take that are a little cooler than the hottest ones."""
OFTEN = 5.0
"""The ratio of slow inferences to those among the cooler ones that is no chance."""
Level = tuple[float, float]
"""The temperature from which on, and the time of an inference in seconds."""


def throttle_steps(histories: Sequence[History]) -> tuple[float, tuple[ThrottleStep, ...]]:
    """Time of an inference on the cool phone, seconds, and the steps above it; none where it never became slower.

    Of the timed inferences of one cell on one device; where no temperature has ten of them, their median and no step.
    """
    temps_c = np.concatenate([each.temp_at(each.begun)[each.timed] for each in histories])
    each_s = np.concatenate([each.each_took[each.timed] for each in histories])
    levels = _levels(temps_c, each_s)
    if not levels:
        return float(np.median(each_s)), ()
    levels = [levels[0], *(_placed(temps_c, each_s, *pair) for pair in pairwise(levels))]
    levels += _tip(temps_c, each_s, *levels[-1])
    cool_s = levels[0][1]
    return cool_s, tuple(ThrottleStep(at=round(at, 2), times=round(each / cool_s, 4)) for at, each in levels[1:])


def _levels(temps_c: Column, each_s: Column) -> list[Level]:
    """Return levels by the edges of bins."""
    edges_c, medians_s, counts = _by_temperature(temps_c, each_s)
    levels: list[tuple[float, float, float]] = []  # from which temperature, time, weight
    for edge_c, value_s, count in zip(edges_c, _non_decreasing(medians_s, counts), counts, strict=True):
        if levels and value_s <= levels[-1][1] * (1 + CHANGE):
            first_c, known_s, weight = levels[-1]
            levels[-1] = (first_c, (known_s * weight + value_s * count) / (weight + count), weight + count)
        else:
            levels.append((edge_c, value_s, count))
    return [level[:2] for level in levels]


def _placed(temps_c: Column, each_s: Column, below: Level, above: Level) -> Level:
    """The upper level, from the temperature at which fewest inferences are on the wrong side."""
    near = np.abs(temps_c - above[0]) <= NEAR_C
    order = np.argsort(temps_c[near], kind="stable")
    at_c, slow = temps_c[near][order], each_s[near][order] ** 2 > below[1] * above[1]
    wrong = np.concatenate([[0], np.cumsum(slow)]) + np.concatenate([np.cumsum(~slow[::-1])[::-1], [0]])
    return float(np.append(at_c, above[0])[np.argmin(wrong)]), above[1]


def _tip(temps_c: Column, each_s: Column, from_c: float, level_s: float) -> list[Level]:
    """A step that holds the phone there, which is the hottest that it became; none where none is seen."""
    tip = temps_c > max(from_c, float(temps_c.max()) - TIP_C)
    cooler = each_s[~tip & (temps_c >= from_c)]
    if not len(cooler):
        return []
    limit_s = max(level_s * (1 + CHANGE), float(np.quantile(cooler, RARE)))
    slow = tip & (each_s > limit_s)
    expected = np.count_nonzero(tip) * float(np.mean(cooler > limit_s))
    if np.count_nonzero(slow) < max(FEWEST_SLOW, OFTEN * expected):
        return []
    return [(float(temps_c[slow].min()), float(np.quantile(each_s[slow], 0.9)))]


def _by_temperature(temps_c: Column, each_s: Column) -> tuple[Column, Column, Column]:
    """The lower edge of each bin that has enough inferences, their median, their number."""
    order = np.argsort(temps_c, kind="stable")
    rows = []
    for number, own in groupby(order, key=lambda n: np.floor(temps_c[n] / BIN_C)):
        inside = each_s[list(own)]
        if len(inside) >= FEWEST_IN_BIN:
            rows.append((number * BIN_C, float(np.median(inside)), len(inside)))
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _non_decreasing(values: Column, weights: Column) -> Column:
    """The nearest such values, by weighted least squares."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many values
    for value, weight in zip(values, weights, strict=True):
        mean, total, count = float(value), float(weight), 1
        while pools and pools[-1][0] >= mean:
            other, more, several = pools.pop()
            mean, total, count = (mean * total + other * more) / (total + more), total + more, count + several
        pools.append((mean, total, count))
    return np.repeat([mean for mean, _, _ in pools], [count for _, _, count in pools])
