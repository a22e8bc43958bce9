"""A test for values of a coarse clock, of which there are few kinds: do they step?"""

from __future__ import annotations

from math import lgamma

import numpy as np

TICKS = 4
"""Values of so many kinds or fewer are those of a coarse clock."""
APART = 3.0
"""A step of more ticks is none that a few ticks make which come together."""


def p_of_ticks(left: np.ndarray, right: np.ndarray) -> float:
    """Return the two-sided probability that so many high values lie on one side by chance, of few kinds as a coarse
    clock gives them (R. A. Fisher's exact test). Student's t takes a few ticks that come together for a step. 0 of
    many kinds, of sides that have one each, and of sides that lie more than `APART` ticks apart."""
    whole = np.concatenate([left, right])
    every = np.unique(whole)
    kinds = [len(np.unique(each)) for each in (left, right)]
    if len(every) > TICKS or kinds == [1, 1]:
        return 0.0
    if len(every) > 1 and abs(right.mean() - left.mean()) > APART * np.diff(every).min():
        return 0.0
    middle = (left.mean() + right.mean()) / 2
    here, high = int((right > middle).sum()), int((whole > middle).sum())
    if right.mean() < left.mean():
        here, high = len(right) - here, len(whole) - high
    most = min(high, len(right))
    ways = [
        _log_ways(len(right), k) + _log_ways(len(left), high - k) for k in range(max(here, high - len(left)), most + 1)
    ]
    return min(1.0, 2 * float(np.exp(np.array(ways) - _log_ways(len(whole), high)).sum()))


def _log_ways(count: int, chosen: int) -> float:
    return lgamma(count + 1) - lgamma(chosen + 1) - lgamma(count - chosen + 1)
