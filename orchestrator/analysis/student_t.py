"""Student's t distribution for 95 % intervals of means."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def t_quantile(probability: float, freedom: float) -> float:
    """The value below which `probability` of the distribution lies; `freedom`: degrees of freedom, > 0."""
    return float(t_quantiles(probability, freedom))


def t_quantiles(probability: ArrayLike, freedom: ArrayLike) -> Array:
    """The same of many."""
    from scipy.special import stdtrit  # a quarter of a second, which the scheduler's start does not need

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
