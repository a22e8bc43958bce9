"""Tell how much likelier a series is by a step at a place than by a level that wanders.

A level that goes its own way, as temperature and age do, stands higher on one side of almost any place, so that tests
of means call it steps. Here values are noise around a random walk (A. C. Harvey, "Forecasting, Structural Time Series
Models and the Kalman Filter", 1989), whose share of the noise is likeliest, once with a step and once without. Sines
make neighbours' differences independent, whatever that share is, so that both likelihoods are sums.
"""

from __future__ import annotations

from math import inf, log

import numpy as np

SHARES = np.concatenate([[0.0], np.geomspace(1e-3, 4.0, 14)])[:, None]
"""Variance of a step of the walk over that of a value's noise."""
CERTAIN = 1e-20
"""Least share of the sum of squares that a step leaves where there is noise."""
BY_VALUES, FEW = 4.2, 3.6
"""A step must be likelier by `BY_VALUES` times the logarithm of the number of values, as a multiple of `FEW`
(benchmarks/statistics/steps.py)."""
SURE = 18.0
"""A step that is likelier by so much is one, whatever the level does: of series that wander at most 1 % have one."""


def least_evidence(count: int) -> float:
    """Return what a step in a series of so many values must have."""
    return BY_VALUES * log(max(FEW, count) / FEW)


def evidence(values: np.ndarray, place: int) -> float:
    """Twice the logarithm of how much likelier values are with a step before `place`; infinite without any noise."""
    from scipy.fft import dst

    count = len(values)
    at = np.pi * np.arange(1, count) / count
    spread = SHARES + 2 - 2 * np.cos(at)
    moves, step = dst(np.diff(values), type=1, norm="ortho"), np.sqrt(2 / count) * np.sin(place * at)
    whole, shared, own = ((each / spread).sum(axis=1) for each in (moves**2, moves * step, step**2))
    rest = whole - shared**2 / own
    if rest.min() <= CERTAIN * whole.max():
        return inf
    common = np.log(spread).sum(axis=1)
    without, with_step = (-(common + (count - 1) * np.log(each)).min() for each in (whole, rest))
    return float(with_step - without)
