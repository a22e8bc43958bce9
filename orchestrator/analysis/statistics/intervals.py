"""The interval of a median over blocks, with the level that it really has.

By ranks: so many of n independent values lie below their median as heads in n throws of a coin, whatever their
distribution (Thompson, "On Confidence Ranges for the Median", 1936). Ends lie between two ranks, interpolated for 95 %
by Hettmansperger & Sheather, "Confidence intervals based on interpolated order statistics", Statistics & Probability
Letters 4, 1986. Past the middle between them, values on two levels are covered as by the inner rank alone: so they go
there only where that rank leaves out at most half more than it may. Fewer than six values allow no 95 %: then the
interval is their range, with its own level.

Values that were added until their interval was narrow are looked at again and again. Each look may leave out a share
that grows with the square of their number (Kim & DeMets, "Design and analysis of group sequential tests based on the
type I error spending rate function", Biometrika 74, 1987, spend errors by such powers): early ones leave out hardly
any, as chance makes few values narrow, and those are the least sure.

Such an interval also reaches over a gap between the values, which may part two levels: chance shows mostly one of
them, and looks narrow, but the median lies in the gap. Only as many values as one in 2000 cells has on that side of
its median are taken for outliers.

A time, an energy of a load, a power, an amount of memory is above zero. Their intervals widen by factors, as such
figures vary, so that no bound is below zero. Differences, as net energies are, may have either sign: `positive=False`.

Blocks that follow each other may be alike (heat, background work): the interval is wider as if there were only as many
values as are independent (`serial.py`). Fewer than `SERIAL_BLOCKS` show nothing of it, so that only an allowance is
made, and the level of their range is conditional. benchmarks/statistics/coverage.py is the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from math import comb, exp, log
from statistics import median
from typing import NamedTuple

from orchestrator.model.base import Model

from .serial import SERIAL_BLOCKS, widening

MIN_BLOCKS = 3
LEVEL = 0.95
WATCHED_OUT, WATCHED_BLOCKS = 0.015, 30
"""The most that the ranks of watched values may leave out, and of how many values: half as many may leave out a quarter
of it."""
GAP = 1.5
"""Values lie apart that are so many half-widths of the interval away from their neighbour."""
GAP_OUT = 0.0005
"""The share that ranks of watched values that lie apart may leave out: what the range of twelve leaves out."""
MOST_INTERPOLATED = 0.48
LARGEST_LOG = 700.0
"""The largest logarithm of a factor that a number can hold."""
INNER_OUT = 1.7
"""Ranks are interpolated further where the inner one leaves out at most so many times what it may."""


class Method(StrEnum):
    """The method by which an interval is made."""

    T = "t"
    """Student's t of means."""
    EXACT = "exact"
    """Clopper and Pearson's, of a share."""
    RANGE = "range"
    """Least and largest of too few values for 95 %, further apart as these may be alike."""
    RANKS = "ranks"
    """The method of the sorted values, interpolated."""
    OWN = "own"
    """The uncertainty that the only block states of itself: nothing is known of other blocks."""


class Interval(Model):
    """An interval in the unit of what it belongs to."""

    low: float
    high: float
    level: float = LEVEL
    """The rate at which intervals made so hold the truth, at least; 0 where nobody knows."""
    method: Method = Method.T
    conditional: bool = False
    """True if the level holds only for independent successive blocks: there are too few to show it."""

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2


class _Ranks(NamedTuple):
    """Ends of an interval of sorted values: from the value of index `inner - 1` towards that of `inner`."""

    inner: int
    share: float
    level: float
    method: Method


def median_interval(values: Sequence[float], *, watched: bool = False, positive: bool = True) -> Interval | None:
    """Interval of the median of values in order of time; None with fewer than `MIN_BLOCKS`. `watched`: whether values
    were added until the interval was narrow enough. `positive`: whether the quantity cannot be below zero."""
    n = len(values)
    if n < MIN_BLOCKS:
        return None
    ranks = _ranks(n, (1 - WATCHED_OUT * min(1.0, n / WATCHED_BLOCKS) ** 2) if watched else LEVEL)
    low, high = _ends(values, ranks, watched=watched, positive=positive)
    return Interval(
        low=low,
        high=high,
        level=min(ranks.level, LEVEL),
        method=ranks.method,
        conditional=n < SERIAL_BLOCKS,
    )


def _ends(values: Sequence[float], ranks: _Ranks, *, watched: bool, positive: bool) -> tuple[float, float]:
    n, ordered = len(values), sorted(values)
    low = _between(ordered[ranks.inner - 1], ordered[ranks.inner], ranks.share)
    high = _between(ordered[n - ranks.inner], ordered[n - ranks.inner - 1], ranks.share)
    middle = median(ordered)
    wider, by_factor = widening(values, watched=watched), positive and ordered[0] > 0
    low, high = (_further(middle, end, wider, by_factor=by_factor) for end in (low, high))
    if watched:
        apart = GAP * (high - low) / 2
        mirrored = [-value for value in reversed(ordered)]
        low = min(low, _beyond(ordered, ranks.inner, apart))
        high = max(high, -_beyond(mirrored, ranks.inner, apart))
    return (max(low, min(0.0, ordered[0])) if positive else low), high


def _further(middle: float, end: float, wider: float, *, by_factor: bool) -> float:
    """Return the end `wider` times as far from the middle; `by_factor`: between logarithms."""
    if not by_factor:
        return middle + (end - middle) * wider
    return middle * exp(min(LARGEST_LOG, wider * log(end / middle)))


def _between(outer: float, inner: float, share: float) -> float:
    return outer if share == 0 else outer + share * (inner - outer)


def _beyond(ordered: Sequence[float], inner: int, apart: float) -> float:
    """The value below the outermost gap wider than `apart`, outliers left aside; that of index `inner` without one."""
    least = _ranks(len(ordered), 1 - GAP_OUT).inner
    gaps = (at for at in range(least - 1, inner) if ordered[at + 1] - ordered[at] > apart)
    return ordered[next(gaps, inner)]


@lru_cache(maxsize=256)
def _ranks(n: int, level: float) -> _Ranks:
    if _covers(n, 1) <= level:
        return _Ranks(1, 0.0, _covers(n, 1), Method.RANGE)
    inner = next(k for k in range(1, n) if _covers(n, k + 1) <= level)
    outer_level, inner_level = _covers(n, inner), _covers(n, inner + 1)
    part = (outer_level - level) / (outer_level - inner_level)
    share = (n - inner) * part / (inner + (n - 2 * inner) * part)
    further = 1 - inner_level <= INNER_OUT * (1 - level)
    return _Ranks(inner, share if further else min(share, MOST_INTERPOLATED), LEVEL, Method.RANKS)


def _covers(n: int, k: int) -> float:
    """Return how often the median lies between the k-th smallest and k-th largest of n values; -1 past the middle."""
    return -1.0 if 2 * k > n + 1 else 1 - 2 * sum(comb(n, i) for i in range(k)) / 2**n


def relative_half_width(values: Sequence[float], *, watched: bool = False, positive: bool = True) -> float | None:
    """Half-width of the interval of the median as a share of the median; None without an interval."""
    interval = median_interval(values, watched=watched, positive=positive)
    middle = median(values) if values else 0.0
    if interval is None or middle == 0:
        return None
    return interval.half_width / abs(middle)


def range_coverage(blocks: int) -> float:
    """Return how often the range of so many values covers the true median, by any distribution: 1 - 2 / 2^n."""
    return 1 - 2 * 0.5**blocks if blocks else 0.0
