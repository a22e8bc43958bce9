"""Student's t distribution for 95 % intervals of means."""

from __future__ import annotations

from math import isinf


def t_quantile(probability: float, freedom: float) -> float:
    """The value below which `probability` of the distribution lies; `freedom`: degrees of freedom, > 0."""
    from scipy.special import stdtrit  # a quarter of a second, which the scheduler's start does not need

    return float(stdtrit(freedom, probability))


def half_width(std: float, freedom: float) -> float:
    """Half the width of the 95 % interval of a figure with this standard uncertainty."""
    return 0.0 if std == 0 else std * t_quantile(0.975, freedom)


def welch_freedom(*parts: tuple[float, float]) -> float:
    """Degrees of freedom of a sum of independent figures, from each (standard uncertainty, degrees of freedom).

    Welch-Satterthwaite; infinite where all are exact.
    """
    below = sum(std**4 / freedom for std, freedom in parts if std and not isinf(freedom))
    total = sum(std**2 for std, _ in parts)
    return total**2 / below if below else float("inf")
