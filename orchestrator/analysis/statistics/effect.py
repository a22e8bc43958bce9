"""The smallest difference between two cells that their blocks can show.

MDE = (t(1 - alpha/2) + t(power)) * SE, with SE of the difference of the two medians and Welch's degrees of freedom:
Bloom, "Minimum Detectable Effects: A Simple Way to Report the Statistical Power of Experimental Designs", Evaluation
Review 19(5), 1995; for means of two samples the same as Cohen, "Statistical Power Analysis", 1988, ch. 2. The factor
sqrt(pi / 2) is the ratio of the standard errors of median and mean of normal values. The error is that of trimmed means
(K. K. Yuen, Biometrika 61, 1974): one slow block among seven or more does not spoil it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from statistics import median, variance

from orchestrator.analysis.student_t import t_quantile
from orchestrator.model.base import Model

LEVEL = 0.05
POWER = 0.8
MIN_BLOCKS_OF_EFFECT = 3
TRIMMED_FROM = 7
"""Blocks of which one is trimmed at each end."""


class Effect(Model):
    """A true difference of this size between two cells is found in 80 % of experiments at the 5 % level."""

    difference: float
    """The difference in the unit of the values."""
    share: float
    """The difference as a share of the first cell's median."""


def detectable(first: Sequence[float], second: Sequence[float]) -> Effect | None:
    """The minimum detectable effect of two cells' block medians; None with fewer than three blocks of either."""
    if min(len(first), len(second)) < MIN_BLOCKS_OF_EFFECT or median(first) == 0:
        return None
    (a, kept_a), (b, kept_b) = map(_variance_of_centre, (first, second))
    if a + b == 0:
        return Effect(difference=0.0, share=0.0)
    freedom = (a + b) ** 2 / (a**2 / (kept_a - 1) + b**2 / (kept_b - 1))
    error = sqrt(pi / 2) * sqrt(a + b)
    difference = (t_quantile(1 - LEVEL / 2, freedom) + t_quantile(POWER, freedom)) * error
    return Effect(difference=difference, share=difference / abs(median(first)))


def _variance_of_centre(values: Sequence[float]) -> tuple[float, int]:
    """Return the variance of the trimmed mean, and how many values are kept."""
    count, ordered = len(values), sorted(values)
    cut = max(count // 10, int(count >= TRIMMED_FROM))
    kept = count - 2 * cut
    low, high = ordered[cut], ordered[count - cut - 1]
    drawn_in = variance(min(max(value, low), high) for value in values)
    return drawn_in * (count - 1) / (kept * (kept - 1)), kept
