"""Medians, percentiles and intervals. The independent unit is the block: intervals resample blocks, not samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import median

import numpy as np

from orchestrator.model.base import Model

RESAMPLES = 2000
MIN_BLOCKS = 3


class Interval(Model):
    """A 95 % interval, in the unit of what it belongs to."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


def bootstrap_median(values: Sequence[float], seed: int = 1) -> Interval | None:
    """95 % percentile bootstrap interval of the median (Efron, "Bootstrap Methods: Another Look at the Jackknife",
    1979); None with fewer than `MIN_BLOCKS` values. The same values in any order and seed give the same interval."""
    if len(values) < MIN_BLOCKS:
        return None
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    below, above = _middles(len(ordered), seed)
    low, high = np.percentile((ordered[below] + ordered[above]) / 2, (2.5, 97.5)).tolist()
    return Interval(low=low, high=high)


@lru_cache(maxsize=64)
def _middles(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks of the two values in the middle of each resample (the same where their number is odd): they depend on the
    number of values alone, and most cells have as many blocks as others."""
    ranks = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    middle = (count - 1) // 2, count // 2
    sorted_there = np.partition(ranks, middle, axis=1)
    return sorted_there[:, middle[0]], sorted_there[:, middle[1]]


def relative_half_width(values: Sequence[float], seed: int = 1) -> float | None:
    """Half-width of the interval of the median as a share of the median; None without an interval."""
    interval, middle = bootstrap_median(values, seed), median(values) if values else 0.0
    if interval is None or middle == 0:
        return None
    return interval.half_width / abs(middle)


def range_coverage(blocks: int) -> float:
    """How often the range of so many values covers the true median, whatever their distribution: 1 - 2 / 2^n."""
    return 1 - 2 * 0.5**blocks if blocks else 0.0
