"""Compare how many examples two sides get right, example by example."""

from __future__ import annotations

from collections.abc import Iterable
from math import log
from typing import NamedTuple

import numpy as np

from orchestrator.analysis.student_t import Array

from .ratio import Estimate, Places
from .rows import SideRow


class Accuracies(NamedTuple):
    """The accuracies on the examples that both sides have."""

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
    from orchestrator.analysis.agreement.paired import mcnemar  # it brings the grammar of expressions along

    both = [(first[place], second[place]) for place in common]
    only_a, only_b = both.count((True, False)), both.count((False, True))
    right_a, right_b = (sum(pair[side] for pair in both) for side in (0, 1))
    count = len(common)

    def after(more: Places, at: Places) -> tuple[Array, Array]:
        grown = 1 + more / count
        below = (grown * right_a + 0.5) * (grown * right_b + 0.5)
        std = np.sqrt((grown * (only_a + only_b) + 1) / below)
        return std, np.full(len(at), 1e6)  # normal: the counts are large, or the interval is wide anyway

    std, freedom = after(np.zeros(1, np.intp), np.zeros(1, np.intp))
    centre = np.array([log((right_b + 0.5) / (right_a + 0.5))])
    point = np.log([right_b / right_a]) if right_a and right_b else centre
    found = Estimate(point, centre, std, freedom, "examples", (count, count), (1, 1), after)
    return Accuracies(right_a / count, right_b / count, found, mcnemar(only_a, only_b))


def _right(rows: Iterable[SideRow]) -> dict[int, bool]:
    answered = [row for row in rows if row.right]
    return {
        row.first_example + place: letter == "1"
        for row in sorted(answered, key=lambda row: row.started_at)
        for place, letter in enumerate(row.right)
    }
