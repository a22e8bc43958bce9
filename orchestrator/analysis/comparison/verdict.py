"""Judge all rows of a table together: different, the same within a margin, or unknown.

`same`: the 95 % interval of the ratio lies within the margin: two one-sided tests of equivalence (D. J. Schuirmann,
J. Pharmacokinetics and Biopharmaceutics 15, 1987), at 2.5 % each, so that the interval that is shown decides.
`different`: the test of no difference is significant after Holm's correction over all rows of the table (S. Holm,
Scandinavian J. of Statistics 6, 1979), which holds whatever rows have in common; and the ratio is not the same within
the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Literal, NamedTuple

from orchestrator.analysis.student_t import t_quantile

from .ratio import Estimate

Verdict = Literal["different", "same", "unknown", "missing"]
CONFIDENCE = 0.95
POWER = 0.8
MOST_NEEDED = 100_000


class Bounds(NamedTuple):
    """Of the logarithm of the ratio."""

    low: float
    high: float


def share_of(look: int) -> float:
    """Of the errors that may be made, what a look at a cell may spend that is looked at again with more blocks; those
    of all looks, from the first, are one. 0: the only look."""
    return 1 / (look * (look + 1)) if look else 1.0


def bounds(found: Estimate, share: float = 1.0) -> Bounds:
    """The 95 % interval, or a wider one that may miss the truth by a share as often."""
    half = _quantile(1 - (1 - CONFIDENCE) * share / 2, found.freedom) * found.std
    return Bounds(found.log_ratio - half, found.log_ratio + half)


def p_value(found: Estimate) -> float:
    """Two-sided, of no difference."""
    from scipy.special import stdtr

    if found.std == 0:
        return 0.0 if found.log_ratio else 1.0
    return float(2 * stdtr(min(found.freedom, 1e9), -abs(found.log_ratio) / found.std))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p of each, in the order given."""
    adjusted, worst = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = worst
    return adjusted


def judge(within: Bounds, margin: float, adjusted_p: float, level: float) -> Verdict:
    """`margin`: a share; a ratio counts as the same from 1 / (1 + margin) to 1 + margin."""
    limit = log(1 + margin)
    if -limit <= within.low and within.high <= limit:
        return "same"
    return "different" if adjusted_p <= level else "unknown"


def needed(found: Estimate, margin: float, level: float, rows: int, share: float = 1.0) -> int | None:
    """How many more units a side would settle it in four of five cases, if the ratio is what it seems; None where no
    number of them does."""
    limit, ratio = log(1 + margin), abs(found.log_ratio)

    def settles(more: int) -> bool:
        std, freedom = found.after(more)
        power = _quantile(POWER, freedom)
        same = (_quantile(1 - (1 - CONFIDENCE) * share / 2, freedom) + power) * std <= limit - ratio
        return same or (_quantile(1 - level * share / 2 / rows, freedom) + power) * std <= ratio

    if not settles(MOST_NEEDED):
        return None
    low, high = 0, 1
    while not settles(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settles(middle) else (middle, high)
    return high


def _quantile(probability: float, freedom: float) -> float:
    return t_quantile(probability, min(freedom, 1e9))
