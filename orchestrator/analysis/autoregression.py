"""Least squares of values each of which resembles the one before: first-order autoregression, AR(1).

The correlation r of a value with the next one is read off how much values that are two to four apart differ more than
neighbours do (a variogram), which steps and spikes hardly touch. Values and columns are then freed of it (S. J. Prais
and C. B. Winsten, Cowles Commission Discussion Paper 383, 1954), after which Student's t holds as for independent ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log, sqrt
from statistics import fmean
from typing import NamedTuple

import numpy as np

LAGS = (1, 2, 3, 4)
GRID = np.linspace(0, 0.95, 96)
OUTLYING = 4.5
"""Differences that are larger than so many medians are drawn in to there."""
SHADE, FEW = 1.0, 10
"""Standard errors by which the correlation of many values is raised, and the number of values up to which by none."""
KNOWN_FROM = 18
"""The number of values at which half of the correlation that they show is believed: what a dozen seem to show hid
steps of eight standard deviations."""


class Fitted(NamedTuple):
    """The weight of the last column, and how likely so much or more is by chance, two-sided."""

    size: float
    p_value: float


def resemblance(parts: Sequence[np.ndarray]) -> float:
    """Correlation of a value with the next one, from 0, of many values rather too much than too little, of few towards
    none; `parts`: stretches of a series, each with a level of its own."""
    squares = [_square([part[lag:] - part[:-lag] for part in parts if len(part) > lag]) for lag in LAGS]
    known = [each for each in squares if each is not None]
    if len(known) < 2 or not known[0]:
        return 0.0
    further = [fmean((1 - r**lag) / (1 - r) for lag in LAGS[1 : len(known)]) for r in GRID]
    count = sum(map(len, parts))
    found = float(np.interp(fmean(known[1:]) / known[0], further, GRID)) / (1 + (KNOWN_FROM / count) ** 2)
    shade = SHADE * max(0.0, 1 - FEW / count)
    return min(found + shade * sqrt((1 - found**2) / count), float(GRID[-1]))


def _square(differences: Sequence[np.ndarray]) -> float | None:
    """Mean square, those that are far out drawn in; None of none."""
    if not differences:
        return None
    every = np.concatenate(differences)
    limit = OUTLYING * float(np.median(np.abs(every))) or np.inf
    return float(np.mean(np.clip(every, -limit, limit) ** 2))


def last_column(values: np.ndarray, columns: np.ndarray, alike: float) -> Fitted:
    """Fit the last column by least squares of values whose neighbours have the correlation `alike`."""
    from scipy.special import stdtr

    size, error = with_error(values, columns, alike)
    if error == inf:
        return Fitted(0.0, 1.0)
    if error <= abs(1e-12 * size):
        return Fitted(size, 0.0 if size else 1.0)
    return Fitted(size, 2 * float(stdtr(len(values) - columns.shape[1], -abs(size) / error)))


def with_error(values: np.ndarray, columns: np.ndarray, alike: float) -> tuple[float, float]:
    """The same weight with its standard error, which is infinite where too few values tell it."""
    freed = _freed(columns, alike)
    square, free = freed.T @ freed, len(values) - columns.shape[1]
    if free < 1 or np.linalg.matrix_rank(square) < columns.shape[1]:
        return 0.0, inf
    size, rest = _fit(_freed(values, alike), freed)
    return size, sqrt(rest / free * float(np.linalg.inv(square)[-1, -1]))


def evidence(values: np.ndarray, columns: np.ndarray, others: np.ndarray, alike: float) -> float:
    """Logarithm of how much likelier values are by some columns than by as many others."""
    rest, other = (_fit(_freed(values, alike), _freed(each, alike))[1] for each in (columns, others))
    return len(values) / 2 * log(other / rest) if rest and other else inf if other else 0.0


def _fit(values: np.ndarray, columns: np.ndarray) -> tuple[float, float]:
    """The weight of the last column, and the sum of squares of what is left."""
    weights, *_ = np.linalg.lstsq(columns, values)
    rest = values - columns @ weights
    return float(weights[-1]), float(rest @ rest)


def difference(left: np.ndarray, right: np.ndarray, alike: float) -> Fitted:
    """Return the means' difference: what few values at the border do counts for no more than the others."""
    from scipy.special import stdtr

    size = float(right.mean() - left.mean())
    rest = np.concatenate([left - left.mean(), right - right.mean()])
    count, of_means = len(rest), [variance_of_mean(len(side), alike) for side in (left, right)]
    spread = float(rest @ rest) / (count - len(left) * of_means[0] - len(right) * of_means[1])
    if spread <= (1e-12 * size) ** 2:
        return Fitted(size, 0.0 if size else 1.0)
    free = max(1.0, count * (1 - alike**2) / (1 + alike**2) - 2)
    return Fitted(size, 2 * float(stdtr(free, -abs(size) / sqrt(spread * sum(of_means)))))


def variance_of_mean(count: int, alike: float) -> float:
    """Variance of the mean of so many values, where that of a value is one."""
    return ((1 + alike) / (1 - alike) - 2 * alike * (1 - alike**count) / (count * (1 - alike) ** 2)) / count


def _freed(values: np.ndarray, alike: float) -> np.ndarray:
    """Return the part of each value that the one before does not predict."""
    first = values[:1] * sqrt(1 - alike**2)
    return np.concatenate([first, values[1:] - alike * values[:-1]])
