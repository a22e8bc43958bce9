"""Student's t distribution for 95 % intervals of means."""

from __future__ import annotations

from functools import lru_cache
from math import exp, lgamma, log, log1p, pi
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .incomplete_beta import incomplete_beta

Array = NDArray[np.float64]


LARGEST, LEAST = 2000.0, 1.0
"""Degrees of freedom that are computed here, within 1e-9 of a quantile, without the import of SciPy."""
_ENOUGH, _MOST_STEPS = 1e-14, 200


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    """The value below which `probability` of the distribution lies; `freedom`: degrees of freedom, > 0."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    if not (LEAST <= freedom <= LARGEST and probability < 1):
        return float(t_quantiles(probability, freedom))
    tail, constant = 1 - probability, lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - log(freedom * pi) / 2
    found = NormalDist().inv_cdf(probability)
    for _ in range(_MOST_STEPS):  # Newton's, from below: the distribution is concave there, so it stays below
        above = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + found * found)) / 2
        step = (above - tail) / exp(constant - (freedom + 1) / 2 * log1p(found * found / freedom))
        found += step
        if abs(step) <= _ENOUGH * found:
            break
    return found


def t_quantiles(probability: ArrayLike, freedom: ArrayLike) -> Array:
    """The same of many."""
    from scipy.special import stdtrit  # 0.18 s: see incomplete_beta.py

    return np.asarray(stdtrit(freedom, probability), dtype=np.float64)


def half_width(std: float, freedom: float) -> float:
    """Half the width of the 95 % interval of a figure with this standard uncertainty."""
    return 0.0 if std == 0 else std * t_quantile(0.975, freedom)


def welch_freedom(*parts: tuple[float, float]) -> float:
    """Degrees of freedom of a sum of independent figures, from each (standard uncertainty, degrees of freedom).

    Welch-Satterthwaite; infinite where all are exact.
    """
    return float(welch_freedoms(*parts))


def welch_freedoms(*parts: tuple[ArrayLike, ArrayLike]) -> Array:
    """The same of many sums."""
    pairs = [(np.asarray(std, np.float64), np.asarray(freedom, np.float64)) for std, freedom in parts]
    below = np.asarray(sum(std**4 / freedom for std, freedom in pairs))
    total = np.asarray(sum(std**2 for std, _ in pairs))
    found: Array = np.divide(total**2, below, out=np.full(below.shape, np.inf), where=below > 0)
    return found
