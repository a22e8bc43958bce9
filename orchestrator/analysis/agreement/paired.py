"""Compare two sets of predictions of the same examples: McNemar's test of accuracy and agreement beyond chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p of McNemar's test: examples that only the first, and only the second, has right.

    Exact, by the binomial distribution with one half: McNemar, "Note on the Sampling Error of the Difference Between
    Correlated Proportions or Percentages", Psychometrika 12(2), 1947.
    """
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(only_first, only_second), only_first + only_second, 0.5)))


def kappa(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Agreement beyond that of chance, 1 at most: Cohen, "A Coefficient of Agreement for Nominal Scales", Educational
    and Psychological Measurement 20(1), 1960. None where chance alone makes them agree: one class only, or nothing."""
    n, firsts, seconds = len(first), Counter(first), Counter(second)
    by_chance = sum(count * seconds[value] for value, count in firsts.items())
    if by_chance == n * n:
        return None
    agreeing = sum(a == b for a, b in zip(first, second, strict=True))
    return (agreeing * n - by_chance) / (n * n - by_chance)
