"""Medians, percentiles and intervals. The independent unit is the block: intervals resample blocks, not samples."""

from __future__ import annotations

from collections.abc import Sequence
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
    chosen = np.random.default_rng(seed).integers(0, len(ordered), (RESAMPLES, len(ordered)))
    low, high = np.percentile(np.median(ordered[chosen], axis=1), (2.5, 97.5)).tolist()
    return Interval(low=low, high=high)


def relative_half_width(values: Sequence[float], seed: int = 1) -> float | None:
    """Half-width of the interval of the median as a share of the median; None without an interval."""
    interval, middle = bootstrap_median(values, seed), median(values) if values else 0.0
    if interval is None or middle == 0:
        return None
    return interval.half_width / abs(middle)


def range_coverage(blocks: int) -> float:
    """How often the range of so many values covers the true median, whatever their distribution: 1 - 2 / 2^n."""
    return 1 - 2 * 0.5**blocks if blocks else 0.0
