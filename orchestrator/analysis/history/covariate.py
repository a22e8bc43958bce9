"""Which steps of the ratio are its own, and not the device's heat or battery seen through it.

Two builds need not slow down alike when a phone is hot. So the ratio is fitted by the level of the baseline on the same
phone, which follows heat and battery, and by steps, together (analysis of covariance, least squares). A step is taken
in, the largest first, where the level and the steps before it leave it at least half of its size and it is sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from orchestrator.analysis.statistics.serial import independent_share

from .steps import Step

OWN_SHARE = 0.5


def own_steps(ratio: np.ndarray, level: np.ndarray, steps: Sequence[Step], sure: float) -> frozenset[int]:
    """The places of those that are the ratio's own. Logarithms, without gaps."""
    if not steps:
        return frozenset()
    nights = np.arange(len(ratio))
    columns = [np.ones(len(ratio)), _smooth(level)]
    own = set()
    for step in sorted(steps, key=lambda step: -abs(step.size)):
        tried = [*columns, (nights >= step.place).astype(float)]
        found = _last(ratio, np.column_stack(tried))
        if found.p_value <= sure and found.size / step.size >= OWN_SHARE:
            columns = tried
            own.add(step.place)
    return frozenset(own)


class _Fitted(NamedTuple):
    size: float
    p_value: float


def _last(values: np.ndarray, columns: np.ndarray) -> _Fitted:
    """The weight of the last column, and how likely so much is by chance; neighbours may be alike."""
    from scipy.special import stdtr

    weights, _, rank, _ = np.linalg.lstsq(columns, values)
    size, free = float(weights[-1]), len(values) - rank
    if rank < columns.shape[1] or free < 1:
        return _Fitted(size, 1.0)
    rest = values - columns @ weights
    share = independent_share(rest.tolist())
    variance = float(rest @ rest) / free * float(np.linalg.inv(columns.T @ columns)[-1, -1])
    if variance <= 0:
        return _Fitted(size, 0.0 if size else 1.0)
    freedom = max(1.0, len(values) * share - rank)
    return _Fitted(size, 2 * float(stdtr(freedom, -abs(size) / sqrt(variance / share))))


def _smooth(values: np.ndarray) -> np.ndarray:
    """Medians of three: what a single night did is not what the device is going through."""
    padded = np.concatenate([values[:1], values, values[-1:]])
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, 3), axis=1))
