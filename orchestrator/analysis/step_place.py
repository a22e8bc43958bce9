"""The place of a step between two change points, given that the series steps there.

The likelihood of a step and first-order autoregression, AR(1), is taken at each place with the best levels and spread,
in closed form: the first value of the new level stands out by the whole step of what the one before foretells, later
ones by what the correlation leaves of it. The correlation is known or averaged over (a grid, each as likely before).
What is chosen is the place with the most weight, of its own and of the two next to it a share, so that of places that
are as likely the middle one is taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]

CORRELATIONS = np.arange(-0.3, 0.91, 0.1)
NEIGHBOURS = 0.7
"""Weight of a place that is one off."""
NOTHING = 1e-12
"""Least share of the sum of squares that is left: the step of values without noise is certain."""


def likeliest_place(values: Column, fewest: int, alike: float | None = None) -> int:
    """The first value of the new level, with `fewest` values at least on each side; there have to be twice as many.

    `alike`: the correlation of a value with the next one, None: it is not known.
    """
    known = CORRELATIONS if alike is None else np.array([alike])
    weights = _weights(values, known)
    near = np.convolve(weights, [NEIGHBOURS, 1.0, NEIGHBOURS], "same")
    return fewest + int(np.argmax(near[fewest - 1 : len(values) - fewest]))


def _weights(values: Column, correlations: Column) -> Column:
    """Likelihood of a step before each value but the first, as shares of the largest."""
    count, places = len(values), np.arange(1, len(values))
    r = correlations[:, None]
    first, step = np.sqrt(1 - r**2), 1 - r
    freed = np.hstack([first * values[0], values[1:] - r * values[:-1]])
    beyond = count - 1 - places
    # the products of the columns "level" (1) and "step" (2) with each other and with the values (y)
    p11, p12, p22 = first**2 + (count - 1) * step**2, step + beyond * step**2, 1 + beyond * step**2
    after = np.cumsum(freed[:, ::-1], axis=1)[:, ::-1]
    p1y = first * freed[:, :1] + step * after[:, 1:2]
    p2y = freed[:, places] + step * np.hstack([after[:, 2:], np.zeros_like(r)])
    explained = (p1y**2 * p22 - 2 * p1y * p2y * p12 + p2y**2 * p11) / (p11 * p22 - p12**2)
    whole = np.sum(freed**2, axis=1, keepdims=True)
    rest = np.maximum(whole - explained, NOTHING * whole + np.finfo(float).tiny)
    likelihood = np.log(first) - count / 2 * np.log(rest)
    return np.asarray(np.exp(likelihood - likelihood.max()).sum(axis=0))
