"""Histograms of the base's margins: over all examples, and over those that another result changes."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Collection, Mapping
from math import ceil, log10

from orchestrator.model.base import Model

from .cell_results import Answer

BINS_A_DECADE = 3
DECADES = 6
"""The decades below the largest under which margins lie in one bin."""
_LEAST = sys.float_info.min * 10**DECADES
"""A largest margin below this counts as zero: the limits of its bins would not be different numbers."""


class MarginBin(Model):
    """Examples with such a margin by the base: above `low` (from 0 on in the first bin), up to `high`."""

    low: float
    high: float
    examples: int
    changed: int
    """The examples that at least one other result changes."""


def margin_bins(base: Mapping[int, Answer], changed: Collection[int]) -> tuple[MarginBin, ...]:
    """A histogram with equal steps of the logarithm; empty where no margin is above zero (`_LEAST`)."""
    largest = max((answer.margin for answer in base.values()), default=0.0)
    if largest < _LEAST:
        return ()
    top = ceil(BINS_A_DECADE * log10(largest))
    highs = [10 ** (step / BINS_A_DECADE) for step in range(top - BINS_A_DECADE * DECADES, top)] + [largest]
    counts = [[0, 0] for _ in highs]
    for place, answer in base.items():
        number = bisect_left(highs, answer.margin)
        counts[number][0] += 1
        counts[number][1] += place in changed
    lows = [0.0, *highs]
    return tuple(
        MarginBin(low=lows[i], high=high, examples=counts[i][0], changed=counts[i][1]) for i, high in enumerate(highs)
    )
