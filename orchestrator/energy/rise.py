"""Tell whether the times of a block rise, or only wander as inferences that resemble the one before do.

By a likelihood ratio: the most likely rise (a step anywhere, or a slope between any two places) on noise that is
correlated with the sample before, against such noise alone, whose correlation is free on both sides (restricted
likelihood of a regression with autoregressive errors: Cheang & Reinsel, "Bias Reduction of Autoregressive Estimates in
Time Series Regression Model through Restricted Maximum Likelihood", J. of the American Statistical Association 95,
2000). Slow waves are explained by a correlation near one; a step on quiet noise is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
MOST_BINS = 100
"""The most parts of a block whose medians are judged: a rise lasts for many samples."""
CORRELATIONS = (0.0, 0.2, 0.4, 0.55, 0.7, 0.8, 0.87, 0.92, 0.96, 0.99)
STEPS = 0.1, 0.9
"""A step lies between these places of the block, at any sample: one that were only nearly there would be explained as
well by a correlation near one."""
TURNS = np.linspace(0, 1, 11)
"""Places where slopes begin and end; none is shorter than a fifth of the block."""
CHANCE_LOG = 12.0
"""Logarithm of the ratio that one clean block in 5000 exceeds where each inference is correlated with the one before by
0.9, and fewer elsewhere: benchmarks/statistics/throttled.py."""


def evidence_of_rise(values: Array) -> float:
    """The logarithm of the likelihood ratio over the one that chance hardly exceeds: above 1 they rise."""
    binned = _binned(values)
    centred = binned - binned.mean()
    if not centred.any():
        return 0.0
    calm, rising = -np.inf, -np.inf
    for rises in _rises(len(centred)):
        noise = _whitened(centred, rises.correlation)
        squares = float(noise @ noise - (noise @ rises.level) ** 2)
        explained = float(np.max(np.maximum(rises.shapes @ noise, 0.0)) ** 2)
        freedom = (len(centred) - 1) / 2
        calm = max(calm, rises.log_weight - freedom * np.log(squares))
        rising = max(rising, rises.log_weight - freedom * np.log(max(squares - explained, 1e-12 * squares)))
    return float(rising - calm) / CHANCE_LOG


class _Rises(NamedTuple):
    """All rises at one correlation, whitened, without the level, of length one."""

    correlation: float
    log_weight: float
    level: Array
    shapes: Array


@lru_cache(maxsize=8)
def _rises(count: int) -> tuple[_Rises, ...]:
    shapes = np.array(list(_shapes((np.arange(count) + 0.5) / count)))
    return tuple(_at(correlation, shapes) for correlation in CORRELATIONS)


def _at(correlation: float, shapes: Array) -> _Rises:
    level = _whitened(np.ones(shapes.shape[1]), correlation)
    length = float(np.linalg.norm(level))
    level /= length
    white = _whitened(shapes, correlation)
    white -= np.outer(white @ level, level)
    white /= np.linalg.norm(white, axis=1, keepdims=True)
    return _Rises(correlation, 0.5 * float(np.log(1 - correlation**2)) - float(np.log(length)), level, white)


def _shapes(places: Array) -> Iterator[Array]:
    steps = places[(STEPS[0] <= places) & (places <= STEPS[1])]
    yield from ((places >= step).astype(np.float64) for step in steps)
    for number, start in enumerate(TURNS):
        yield from (np.clip((places - start) / (end - start), 0, 1) for end in TURNS[number + 2 :])


def _whitened(values: Array, correlation: float) -> Array:
    """Return what each has beyond what the one before lets expect."""
    found = values.copy()
    found[..., 1:] -= correlation * values[..., :-1]
    found[..., 0] *= np.sqrt(1 - correlation**2)
    return found


def _binned(values: Array) -> Array:
    size = -(-len(values) // MOST_BINS)
    bins = len(values) // size
    found: Array = values[len(values) - bins * size :].reshape(bins, size)
    return np.median(found, axis=1)
