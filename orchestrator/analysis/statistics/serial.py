"""How alike blocks are that follow each other, and how many independent ones they are worth.

The correlation of each value's rank with the next one's (the rank von Neumann ratio: Bartels, "The Rank Version of von
Neumann's Ratio Test for Randomness", Journal of the American Statistical Association 77, 1982). Of few values it comes
out too low, by about (1 + 3 r) / n (Marriott & Pope, "Bias in the Estimation of Autocorrelations", Biometrika 41,
1954), which is made up for. n values with the correlation r are worth n (1 - r) / (1 + r) independent ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import sqrt

from orchestrator.analysis.student_t import t_quantile
from orchestrator.model.record import Doubt, DoubtCode

SERIAL_BLOCKS = 13
"""So many values show how alike they are: intervals of correlated ones cover 90 % from here on."""
MOST_ALIKE = 0.85
FEWEST_EFFECTIVE = 2.5
FEWEST_OF_DOUBT = 6
ALIKE_DEVIATIONS = 2.33
"""By so many standard deviations the correlation must exceed that of independent values, 1 / sqrt(n), for a doubt: 1 %
of them do (from six values on, by simulation)."""


def serial_correlation(values: Sequence[float]) -> float:
    """Correlation of the rank of each value with the next one's, made up for the bias; 0 of equal values."""
    n = len(values)
    centred = _centred_ranks(values)
    square = sum(rank * rank for rank in centred)
    if n < 2 or square == 0:
        return 0.0
    raw = sum(a * b for a, b in pairwise(centred)) / square
    return raw + (1 + 3 * max(raw, 0.0)) / n


def effective_blocks(values: Sequence[float]) -> float:
    """So many independent values tell as much of the median as these."""
    alike = min(max(serial_correlation(values), 0.0), MOST_ALIKE)
    return len(values) * (1 - alike) / (1 + alike)


def independent_share(values: Sequence[float]) -> float:
    """Of so many independent values each is worth; 1 of too few to tell."""
    return effective_blocks(values) / len(values) if len(values) >= FEWEST_OF_DOUBT else 1.0


def widening(values: Sequence[float]) -> float:
    """By what the interval of independent values is to be multiplied for these; 1 or more."""
    n, worth = len(values), effective_blocks(values)
    wider = sqrt(n / worth)
    if n < SERIAL_BLOCKS or wider == 1:
        return wider
    return wider * _t(max(worth, FEWEST_EFFECTIVE) - 1) / _t(n - 1)


def alike_doubt(values: Sequence[float]) -> Doubt | None:
    """That successive blocks are alike, where chance hardly makes them so."""
    n, correlation = len(values), serial_correlation(values)
    if n < FEWEST_OF_DOUBT or correlation * sqrt(n) < ALIKE_DEVIATIONS:
        return None
    worth = f"{n} blocks tell as much as {max(1, round(effective_blocks(values)))} independent ones"
    return Doubt(code=DoubtCode.ALIKE_BLOCKS, detail=f"correlation {correlation:.1f} of a block with the next: {worth}")


def _centred_ranks(values: Sequence[float]) -> list[float]:
    """Ranks less their mean; equal values share the mean of their ranks."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(place)
    middle = (len(values) - 1) / 2
    rank = {value: (own[0] + own[-1]) / 2 - middle for value, own in places.items()}
    return [rank[value] for value in values]


@lru_cache(maxsize=4096)
def _t(freedom: float) -> float:
    return t_quantile(0.975, freedom)
