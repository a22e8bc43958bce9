"""How many independent values a series is worth whose neighbours are alike."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

MOST_CORRELATION = 0.8
FEWEST_CORRELATED = 6
"""Of fewer values nothing can be said of their correlation."""


def independent_share(values: Sequence[float]) -> float:
    """(1 - r) / (1 + r) of the correlation r of neighbours, as if it were of first order; its estimate from few values
    is too low, by about (1 + 3 r) / n (M. G. Kendall, Biometrika 41, 1954)."""
    count = len(values)
    if count < FEWEST_CORRELATED:
        return 1.0
    middle = fmean(values)
    squares = sum((value - middle) ** 2 for value in values)
    if squares == 0:
        return 1.0
    seen = sum((x - middle) * (y - middle) for x, y in pairwise(values)) / squares
    r = min(MOST_CORRELATION, max(0.0, (count * seen + 1) / (count - 3)))
    return (1 - r) / (1 + r)
