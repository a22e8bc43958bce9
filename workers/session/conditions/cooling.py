"""Predict when a warm phone will be cool enough, from its temperature history. Pure."""

from __future__ import annotations

import math

COOLING_S_PER_C = 60.0
"""A phone at rest loses about a degree a minute: the rule where nothing is known of this one."""
SHORTEST_S, LONGEST_S = 30.0, 1200.0
"""The bounds of a wait: after twenty minutes it is looked at again in any case."""
STEADY_C_PER_MIN = 0.05
"""Slower changes tell nothing of the rate."""


def wait_s(temp_c: float, target_c: float, slope_c_per_min: float | None, reference_c: float | None) -> float:
    """Time until a phone reaches the target, which it now misses: by Newton's law towards its temperature at rest;
    by its slope where that is not known; else by the usual rate."""
    gap_c = abs(temp_c - target_c)
    rate = _rate_per_min(temp_c, target_c, slope_c_per_min)
    if rate is None:
        return _bounded(gap_c * COOLING_S_PER_C)
    if reference_c is None or not _between(reference_c, target_c, temp_c):
        return _bounded(60.0 * gap_c / rate)
    share = (temp_c - reference_c) / (target_c - reference_c)
    per_min = rate / abs(temp_c - reference_c)
    return _bounded(60.0 * math.log(share) / per_min)


def settle_s(temp_c: float, slope_c_per_min: float, slope_max: float, reference_c: float) -> float:
    """Time until the slope has fallen to `slope_max`, by Newton's law; a minute where the law says nothing."""
    gap_c = abs(temp_c - reference_c)
    if gap_c < 0.1 or abs(slope_c_per_min) <= slope_max:
        return 60.0
    return _bounded(60.0 * math.log(abs(slope_c_per_min) / slope_max) * gap_c / abs(slope_c_per_min))


def _rate_per_min(temp_c: float, target_c: float, slope_c_per_min: float | None) -> float | None:
    """Return how fast it goes towards the target; None where that is not known, or where it goes away from it."""
    if slope_c_per_min is None or abs(slope_c_per_min) < STEADY_C_PER_MIN:
        return None
    return abs(slope_c_per_min) if (slope_c_per_min < 0) == (target_c < temp_c) else None


def _between(reference_c: float, target_c: float, temp_c: float) -> bool:
    """Return whether the phone passes the target on its way to its reference, with a little to spare."""
    if target_c < temp_c:
        return target_c > reference_c + 0.1
    return target_c < reference_c - 0.1


def _bounded(seconds: float) -> float:
    return min(LONGEST_S, max(SHORTEST_S, seconds))
