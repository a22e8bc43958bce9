"""A proportion of examples with its 95 % interval."""

from __future__ import annotations

from orchestrator.analysis.statistics.intervals import Interval, Method
from orchestrator.model.base import Model

LEVEL = 0.95


class Proportion(Model):
    """A number of examples out of all, with its share."""

    count: int
    of: int
    share: float
    interval: Interval
    """The interval of the share, from 0 to 1."""


def proportion(count: int, of: int) -> Proportion | None:
    """None where there are no examples."""
    return Proportion(count=count, of=of, share=count / of, interval=exact(count, of)) if of else None


def exact(count: int, of: int) -> Interval:
    """Clopper & Pearson, "The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial", Biometrika
    26, 1934: never covers less than it says, near 0 and 1 too, where shares that changed lie."""
    from scipy.special import betaincinv

    tail = (1 - LEVEL) / 2
    low = float(betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return Interval(low=low, high=high, method=Method.EXACT)


def rule_of_three(of: int) -> float:
    """Return the bound of a share of which no example is known: below 3/n with 95 % confidence.

    Hanley and Lippman-Hand, "If Nothing Goes Wrong, Is Everything All Right?", JAMA 249(13), 1983; for 30 or more.
    """
    return min(1.0, 3 / of)
