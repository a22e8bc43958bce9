"""Compare how many examples two sides get right, example by example."""

from __future__ import annotations

from collections.abc import Iterable
from math import log, sqrt
from typing import NamedTuple

from orchestrator.analysis.agreement.paired import mcnemar

from .ratio import Estimate
from .rows import SideRow


class Accuracies(NamedTuple):
    """Of the examples that both sides have."""

    a: float
    b: float
    estimate: Estimate
    p: float


def accuracies(a: Iterable[SideRow], b: Iterable[SideRow]) -> Accuracies | None:
    """The ratio of the shares that are right, and McNemar's exact test of it; None without a common example.

    The logarithm of the ratio of two shares of the same examples has the variance (only A + only B) / (right A right
    B): P.-M. Nam and W. C. Blackwelder, Statistics in Medicine 21, 2002; half an example is added to each count, so
    that sides without a difference have an uncertainty too.
    """
    first, second = _right(a), _right(b)
    common = sorted(first.keys() & second.keys())
    if not common:
        return None
    both = [(first[place], second[place]) for place in common]
    only_a, only_b = both.count((True, False)), both.count((False, True))
    right_a, right_b = (sum(pair[side] for pair in both) for side in (0, 1))
    count = len(common)

    def after(more: int) -> tuple[float, float]:
        grown = 1 + more / count
        return sqrt(
            (grown * (only_a + only_b) + 1) / ((grown * right_a + 0.5) * (grown * right_b + 0.5))
        ), 1e6  # normal: the counts are large, or the interval is wide anyway

    std, freedom = after(0)
    ratio = log((right_b + 0.5) / (right_a + 0.5))
    found = Estimate(ratio, std, freedom, "examples", (count, count), (1, 1), after)
    return Accuracies(right_a / count, right_b / count, found, mcnemar(only_a, only_b))


def _right(rows: Iterable[SideRow]) -> dict[int, bool]:
    return {
        row.first_example + place: letter == "1"
        for row in sorted(rows, key=lambda row: row.started_at)
        for place, letter in enumerate(row.right)
    }
