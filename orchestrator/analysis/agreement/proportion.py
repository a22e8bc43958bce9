"""A proportion of examples with its 95 % interval."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from orchestrator.analysis.statistics.intervals import Interval, Method
from orchestrator.model.base import Model

LEVEL = 0.95


class Proportion(Model):
    """So many of the examples."""

    count: int
    of: int
    share: float
    interval: Interval
    """Of the share, from 0 to 1."""


def proportion(count: int, of: int) -> Proportion | None:
    """None where there are no examples."""
    return Proportion(count=count, of=of, share=count / of, interval=wilson(count, of)) if of else None


def wilson(count: int, of: int) -> Interval:
    """The score interval of a proportion: Wilson, "Probable Inference, the Law of Succession, and Statistical
    Inference", Journal of the American Statistical Association 22, 1927. It holds for shares near 0 and 1 too."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    share, shrunk = count / of, 1 + z * z / of
    middle = (share + z * z / (2 * of)) / shrunk
    half = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / shrunk
    return Interval(
        low=max(0.0, middle - half) if count else 0.0,
        high=min(1.0, middle + half) if count < of else 1.0,
        method=Method.SCORE,
    )


def rule_of_three(of: int) -> float:
    """Where none of so many examples changed, the share that changes is below 3/n with 95 % confidence.

    Hanley and Lippman-Hand, "If Nothing Goes Wrong, Is Everything All Right?", JAMA 249(13), 1983; for 30 or more.
    """
    return min(1.0, 3 / of)
