"""Student's t distribution: the quantile that an interval of a mean needs. Exact to 1e-9, without a library.

The distribution function through the regularised incomplete beta function by its continued fraction (Abramowitz &
Stegun 26.5.8 and 26.7.1, evaluated by Lentz's method), inverted by bisection.
"""

from __future__ import annotations

from functools import cache
from math import exp, isinf, lgamma, log

TINY = 1e-300
TERMS = 300


@cache
def t_quantile(probability: float, freedom: float) -> float:
    """The value below which `probability` (above 0.5) of the distribution lies; `freedom`: degrees of freedom, > 0."""
    if not 0.5 < probability < 1 or freedom <= 0:
        raise ValueError(f"need 0.5 < probability < 1 and freedom > 0, got {probability} and {freedom}")
    low, high = 0.0, 1.0
    while _upper_tail(high, freedom) > 1 - probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _upper_tail(middle, freedom) > 1 - probability else (low, middle)
    return (low + high) / 2


def half_width(std: float, freedom: float) -> float:
    """Half the width of the 95 % interval of a figure with this standard uncertainty."""
    return 0.0 if std == 0 else std * t_quantile(0.975, min(freedom, 1e6))


def welch_freedom(*parts: tuple[float, float]) -> float:
    """Degrees of freedom of a sum of independent figures, from each (standard uncertainty, degrees of freedom).

    Welch-Satterthwaite; infinite where all are exact.
    """
    below = sum(std**4 / freedom for std, freedom in parts if std and not isinf(freedom))
    total = sum(std**2 for std, _ in parts)
    return total**2 / below if below else float("inf")


def _upper_tail(t: float, freedom: float) -> float:
    return 0.5 * _beta_share(freedom / (freedom + t * t), freedom / 2, 0.5)


def _beta_share(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, TERMS):
        for factor in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                       -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):  # fmt: skip
            d, c = 1 / _away(1 + factor * d), _away(1 + factor / c)
            value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return value


def _away(value: float) -> float:
    return value if abs(value) > TINY else TINY


__all__ = ["half_width", "t_quantile", "welch_freedom"]
