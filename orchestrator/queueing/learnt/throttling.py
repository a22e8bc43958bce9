"""How many times as long an inference takes at a temperature as on the cool phone, as steps.

Medians by half a degree, made non-decreasing by isotonic regression (pool adjacent violators; Barlow, Bartholomew,
Bremner and Brunk, 1972), because heat makes no phone faster. Levels that differ by less than `CHANGE` are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from orchestrator.energy.throttling import CHANGE
from orchestrator.queueing.spec import ThrottleStep

from .history import Column, History

BIN_C = 0.5
FEWEST_IN_BIN = 10


def throttle_steps(histories: Sequence[History]) -> tuple[float, tuple[ThrottleStep, ...]]:
    """Time of an inference on the cool phone, seconds, and the steps above it; none where it never became slower.

    Of the timed inferences of one cell on one device; where no temperature has ten of them, their median and no step.
    """
    temps_c = np.concatenate([each.temp_at(each.begun)[each.timed] for each in histories])
    each_s = np.concatenate([each.each_took[each.timed] for each in histories])
    edges_c, medians_s, counts = _by_temperature(temps_c, each_s)
    if not len(medians_s):
        return float(np.median(each_s)), ()
    level_s = _non_decreasing(medians_s, counts)
    levels: list[tuple[float, float, float]] = []  # from which temperature, time, weight
    for edge_c, value_s, count in zip(edges_c, level_s, counts, strict=True):
        if levels and value_s <= levels[-1][1] * (1 + CHANGE):
            first_c, known_s, weight = levels[-1]
            levels[-1] = (first_c, (known_s * weight + value_s * count) / (weight + count), weight + count)
        else:
            levels.append((edge_c, value_s, count))
    cool_s = levels[0][1]
    return cool_s, tuple(ThrottleStep(at=round(at, 2), times=round(each / cool_s, 4)) for at, each, _ in levels[1:])


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
