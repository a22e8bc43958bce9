"""Judge all rows of a table together: different, the same within a margin, or unknown. Each function takes many rows.

`same`: the 95 % interval of the ratio lies within the margin: two one-sided tests of equivalence (D. J. Schuirmann,
J. Pharmacokinetics and Biopharmaceutics 15, 1987), at 2.5 % each, so that the interval that is shown decides.
`different`: the test of no difference is significant after Holm's correction over all rows of the table (S. Holm,
Scandinavian J. of Statistics 6, 1979), which holds whatever rows have in common; and the ratio is not the same within
the margin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orchestrator.analysis.statistics import MOST_BLOCKS, Interval, Unresolved, is_told
from orchestrator.analysis.student_t import Array, t_quantiles

from .ratio import Estimate, Places

Verdict = Literal["different", "same", "unknown", "missing"]
CONFIDENCE = 0.95
POWER = 0.8
MOST_NEEDED = 100_000
Settles = Callable[[Places, Places], NDArray[np.bool_]]
"""It says whether so many more units a side settle each of the rows at these places."""


class Bounds(NamedTuple):
    """The bounds of the logarithms of ratios."""

    low: Array
    high: Array


def share_of(look: int) -> float:
    """Return the share of the permitted errors that a look may spend at a cell that is looked at again with more
    blocks; those of all looks, from the first, are one. 0: the only look."""
    return 1 / (look * (look + 1)) if look else 1.0


def bounds(found: Estimate, share: ArrayLike = 1.0) -> Bounds:
    """The 95 % intervals, or wider ones that may miss the truth by a share as often; each holds the ratio told."""
    width = _quantiles(1 - (1 - CONFIDENCE) * np.asarray(share) / 2, found.freedom)
    return _within(found.centre, found.point, found.std, width)


def interval_of(found: Estimate) -> Interval:
    """The 95 % interval of the ratio of the only row."""
    return intervals_of(found)[0]


def intervals_of(found: Estimate) -> list[Interval]:
    """The 95 % intervals of ratios."""
    within = _ends(bounds(found))
    return [Interval(low=low, high=high) for low, high in zip(*(each.tolist() for each in within), strict=True)]


def why_untold(found: Estimate) -> list[Unresolved | None]:
    """Return why ratios say nothing, and what would let them: each whose interval holds one and is so wide that no
    figure would be told with it; None of the others."""
    told: list[Unresolved | None] = [None] * len(found.centre)
    places = np.flatnonzero(_says_nothing(found, found.std, found.freedom, np.arange(len(told))))
    if not len(places):
        return told
    of_examples, within = found.method == "examples", intervals_of(found)

    def settles(at: Places, more: Places) -> NDArray[np.bool_]:
        return ~_says_nothing(found, *found.after(more, at), at)

    for place, units in zip(places.tolist(), _fewest(settles, places), strict=True):
        needs = None if units is None else min(found.blocks) + units * found.unit_blocks
        sane = needs if needs is not None and (of_examples or needs <= MOST_BLOCKS) else None
        own = {"needs_examples": sane} if of_examples else {"needs_blocks": sane}
        told[place] = Unresolved(why="wide", above=within[place].low, below=within[place].high, **own)
    return told


def _says_nothing(found: Estimate, std: Array, freedom: Array, at: Places) -> NDArray[np.bool_]:
    within = _within(found.centre[at], found.point[at], std, _quantiles((1 + CONFIDENCE) / 2, freedom))
    return np.asarray((within.low <= 0) & (within.high >= 0) & ~is_told(np.exp(found.point[at]), *_ends(within)))


def _within(centre: Array, point: Array, std: Array, width: Array) -> Bounds:
    """The bounds of an estimate, so many standard uncertainties away; they hold the ratio told."""
    return Bounds(np.minimum(centre - width * std, point), np.maximum(centre + width * std, point))


def _ends(within: Bounds) -> tuple[Array, Array]:
    return np.exp(np.maximum(-700, within.low)), np.exp(np.minimum(700, within.high))


def p_values(found: Estimate) -> Array:
    """Two-sided, of no difference: the least level at which the interval leaves it out. One where the ratio told lies
    on the other side of it than the estimate, so that every interval holds it."""
    from scipy.special import stdtr

    score = np.divide(-np.abs(found.centre), found.std, out=np.zeros(found.std.shape), where=found.std > 0)
    p = np.where(found.std == 0, 0.0, 2 * stdtr(np.minimum(found.freedom, 1e9), score))
    return np.where(found.centre * found.point > 0, p, 1.0)


def holm(p_values: ArrayLike) -> Array:
    """Adjusted p of each, in the order given."""
    given = np.asarray(p_values, np.float64)
    order = np.argsort(given, kind="stable")
    adjusted = np.empty(len(given))
    steps = np.minimum(1.0, np.arange(len(given), 0, -1) * given[order])
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def judge(within: Bounds, margin: ArrayLike, adjusted_p: ArrayLike, level: ArrayLike) -> list[Verdict]:
    """`margin`: a share; a ratio counts as the same from 1 / (1 + margin) to 1 + margin."""
    limit = np.log1p(margin)
    same = (-limit <= within.low) & (within.high <= limit)
    found: list[Verdict] = np.where(
        same, "same", np.where(adjusted_p <= np.asarray(level), "different", "unknown")
    ).tolist()
    return found


def needed(
    found: Estimate, places: Places, margins: ArrayLike, level: float, rows: int, shares: ArrayLike = 1.0
) -> list[int | None]:
    """Return how many more units a side would settle each of the rows at these places in four of five cases, if its
    ratio is what it seems; None where no number of them does. `rows`: of the whole table."""
    every = len(found.centre)
    limits, apart = np.broadcast_to(np.log1p(margins), every), np.abs(found.centre)
    outermost = np.maximum(apart, np.abs(found.point))
    misses = np.broadcast_to(np.asarray(shares, np.float64), every)

    def settles(at: Places, more: Places) -> NDArray[np.bool_]:
        std, freedom = found.after(more, at)
        power = _quantiles(POWER, freedom)
        same = (_quantiles(1 - (1 - CONFIDENCE) * misses[at] / 2, freedom) + power) * std <= limits[at] - outermost[at]
        told = (_quantiles(1 - level * misses[at] / 2 / rows, freedom) + power) * std <= apart[at]
        return np.asarray(same | told)

    return _fewest(settles, places)


def _fewest(settles: Settles, places: Places) -> list[int | None]:
    """The least number of units that settles each row at these places; None where no number does."""
    ever = settles(places, np.full(len(places), MOST_NEEDED))
    least = iter(_least(settles, places[ever]).tolist())
    return [next(least) if settled else None for settled in ever]


def _least(settles: Settles, places: Places) -> Places:
    """The least number, 1 or more, that settles each row at these places, which a large enough one does."""
    low, high = np.zeros(len(places), np.intp), np.ones(len(places), np.intp)
    left = np.arange(len(places))
    while len(left := left[~settles(places[left], high[left])]):
        low[left], high[left] = high[left], 2 * high[left]
    while len(left := np.flatnonzero(high - low > 1)):
        middle = (low[left] + high[left]) // 2
        enough = settles(places[left], middle)
        high[left[enough]], low[left[~enough]] = middle[enough], middle[~enough]
    return high


def _quantiles(probability: ArrayLike, freedom: Array) -> Array:
    return t_quantiles(probability, np.minimum(freedom, 1e9))
