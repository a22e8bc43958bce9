"""Find the refresh period of a gauge from the times between its changes. Pure functions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

FITTING = 0.9
"""Share of the intervals that must be multiples of the period."""
JITTER = 0.08
"""The unevenness of a gauge's own period, as a share."""
SINGLE = 0.25
"""Share of the intervals that must be one period long; if fewer are, the gauge's period is longer."""
CLUSTER = 1.85
"""Intervals up to so many times the shortest ones are one period of an uneven gauge."""
CANDIDATES = 400
GAP = 3.0
"""A pause between two readings longer than so many usual ones tells nothing of what changed in it."""

Times = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


def find_refresh_ns(t_ns: Times, values: Numbers, *, least_changes: int = 6) -> int | None:
    """The refresh period of readings taken more often than that; None where too little changed to tell.

    A new reading may equal the old one, so an interval between changes is one period, or several: the period is the
    longest one of which nearly all intervals are multiples, within what the sampling leaves open.
    """
    if len(t_ns) < 3:
        return None
    sampled_ns = float(np.median(np.diff(t_ns)))
    intervals = _intervals(t_ns, values, sampled_ns)
    if len(intervals) < least_changes - 1:
        return None
    shortest, longest = max(sampled_ns, float(intervals.min()) * 0.5), float(intervals.max()) * 1.1
    periods = np.geomspace(longest, shortest, CANDIDATES)
    shares = np.array([_share(intervals, period, sampled_ns) for period in periods])
    fitting = np.flatnonzero(shares >= FITTING)
    if len(fitting):
        period = _refine(intervals, float(periods[fitting[0]]), sampled_ns)
        if np.mean(np.rint(intervals / period) <= 1) >= SINGLE:
            return round(period)
    return round(_uneven(intervals))


def _uneven(intervals: Numbers) -> float:
    """Mean period of a gauge whose news are shown at another one's pace, e.g. after 200 or 300 ms instead of 250."""
    short = float(np.quantile(intervals, 0.1))
    return float(np.mean(intervals[intervals <= CLUSTER * short]))


def _intervals(t_ns: Times, values: Numbers, sampled_ns: float) -> Numbers:
    """Times between neighbouring changes, each known to a sampling period; without those over a gap."""
    changed = np.flatnonzero(np.diff(values) != 0)
    seen = (t_ns[changed] + t_ns[changed + 1]) / 2
    gaps = t_ns[:-1][np.diff(t_ns) > GAP * sampled_ns]
    whole = [not np.any((gaps >= a) & (gaps <= b)) for a, b in pairwise(seen)]
    found: Numbers = np.diff(seen)[np.array(whole, dtype=bool)]
    return found


def _share(intervals: Numbers, period: float, sampled_ns: float) -> float:
    """Return the share of the intervals that are multiples of the period."""
    count = np.maximum(1, np.rint(intervals / period))
    return float(np.mean(np.abs(intervals - count * period) <= _open(count, period, sampled_ns)))


def _open(count: Numbers, period: float, sampled_ns: float) -> Numbers:
    """Return how far an interval may be from its multiple: coarse sampling, and an uneven clock of the gauge."""
    return sampled_ns + JITTER * period * np.sqrt(count)


def _refine(intervals: Numbers, period: float, sampled_ns: float) -> float:
    """The mean period of the intervals that fit; errors of neighbouring intervals cancel in their sum."""
    for _ in range(5):
        count = np.maximum(1, np.rint(intervals / period))
        fits = np.abs(intervals - count * period) <= _open(count, period, sampled_ns)
        if not fits.any():
            break
        period = float(intervals[fits].sum() / count[fits].sum())
    return period


def thin(t_ns: Times, values: Numbers, refresh_ns: int) -> Numbers:
    """One reading a refresh period: the others repeat it."""
    if len(t_ns) == 0:
        return values
    number = (t_ns - t_ns[0]) // refresh_ns
    first = np.flatnonzero(np.r_[True, np.diff(number) > 0])
    found: Numbers = values[first]
    return found
