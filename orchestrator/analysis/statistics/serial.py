"""The likeness of blocks that follow each other, and how many independent ones they are worth.

The correlation of each value's rank with the next one's (the rank von Neumann ratio: Bartels, "The Rank Version of von
Neumann's Ratio Test for Randomness", Journal of the American Statistical Association 77, 1982). Of few values it comes
out too low, by about (1 + 3 r) / n (Marriott & Pope, "Bias in the Estimation of Autocorrelations", Biometrika 41,
1954), which is made up for. n values with the correlation r are worth n (1 - r) / (1 + r) independent ones.

Levels that stick show more in the values themselves than in their ranks, which mix on either level: a doubt takes the
larger of both correlations.

Few values show their correlation badly, and fewer than `SERIAL_BLOCKS` not at all. Too narrow an interval is worse than
too wide a one, so that it is taken to be higher than it seems, by an allowance that falls with every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from orchestrator.analysis.student_t import Array
from orchestrator.model.quantity import counted
from orchestrator.model.record import Doubt, DoubtCode

SERIAL_BLOCKS = 6
"""Values that show how alike they are: intervals of correlated ones cover 90 % from here on."""
ALLOWANCE = 3.0
"""The correlation of an interval's values is taken to be higher by this over one more than their number. It is the
least by which no interval of normal values widens as one is added, and AR(0.6) is covered in 90 % from six values on
(benchmarks/statistics/coverage.py)."""
WATCHED_ALLOWANCE = 10.5
"""The same of watched values, over the square: their ranks reach out further."""
MOST_ALIKE = 0.85
FEWEST_OF_DOUBT = 6
ALIKE_DEVIATIONS = 2.6
"""Standard deviations, 1 / sqrt(n), by which the larger correlation must exceed that of independent values for a
doubt: 0.6 to 1 % of 7 to 60 of them do, normal, skewed or with outliers, and none of six (by simulation)."""


def serial_correlation(values: Sequence[float]) -> float:
    """Correlation of the rank of each value with the next one's, made up for the bias; 0 of equal values."""
    return float(_correlations(np.array([values], np.float64))[0])


def independent_shares(values: Array) -> Array:
    """Return how many independent values each value is worth, in each row; 1 of too few to tell."""
    rows, count = values.shape
    return _left(_correlations(values)) if count >= FEWEST_OF_DOUBT else np.ones(rows)


def widening(values: Sequence[float], *, watched: bool = False) -> float:
    """Return the factor, 1 or more, by which these values widen the interval of independent ones."""
    more, seen = len(values) + 1, 0.0
    allowance = ALLOWANCE / more
    if len(values) >= SERIAL_BLOCKS:
        seen = serial_correlation(values)
        allowance = WATCHED_ALLOWANCE / more**2 if watched else allowance
    return float(1 / np.sqrt(_left(np.array(seen + allowance))))


def alike_doubt(values: Sequence[float]) -> Doubt | None:
    """Return a doubt that successive blocks are alike, where chance hardly makes them so."""
    n, rows = len(values), np.array([values], np.float64)
    if n < FEWEST_OF_DOUBT:
        return None
    correlation = max(float(_correlations(rows)[0]), float(_lag_one(rows - rows.mean())[0]))
    if correlation * sqrt(n) < ALIKE_DEVIATIONS:
        return None
    left = max(1, round(n * float(_left(np.array(correlation)))))
    worth = f"{counted(n, 'block tells', 'blocks tell')} as much as {counted(left, 'independent one')}"
    return Doubt(code=DoubtCode.ALIKE_BLOCKS, detail=f"correlation {correlation:.1f} of a block with the next: {worth}")


def _left(correlations: Array) -> Array:
    alike = np.clip(correlations, 0.0, MOST_ALIKE)
    return np.asarray((1 - alike) / (1 + alike))


def _correlations(values: Array) -> Array:
    """Return the correlation of the ranks of each row."""
    return _lag_one(_centred_ranks(values))


def _lag_one(centred: Array) -> Array:
    """Return the correlation of neighbours in each row, whose mean is 0."""
    rows, n = centred.shape
    squares = (centred**2).sum(axis=1)
    products = (centred[:, :-1] * centred[:, 1:]).sum(axis=1)
    varies = squares > 0
    raw = np.divide(products, squares, out=np.zeros(rows), where=varies)
    return np.where(varies, raw + (1 + 3 * np.maximum(raw, 0.0)) / max(n, 1), 0.0)


def _centred_ranks(values: Array) -> Array:
    """Ranks in each row less their mean; equal values share the mean of their ranks."""
    count = values.shape[1]
    order = np.argsort(values, axis=1, kind="stable")
    ascending = np.take_along_axis(values, order, axis=1)
    places = np.broadcast_to(np.arange(count), values.shape)
    steps = ascending[:, 1:] != ascending[:, :-1]
    first, last = places.copy(), places.copy()
    first[:, 1:][~steps] = 0
    last[:, :-1][~steps] = count
    first = np.maximum.accumulate(first, axis=1)
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 - (count - 1) / 2, axis=1)
    return ranks
