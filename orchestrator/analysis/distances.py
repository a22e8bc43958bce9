"""Sums of distances between the values of series, without a matrix of all pairs where there are many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]
Rows = NDArray[np.float64]
"""Row by row the values of a series; all are as long."""

MANY = 256
"""Values from which on sorting is quicker than all pairs."""


def distances(rows: Rows) -> tuple[Rows, Rows]:
    """Return each value's sum of distances to those before it in its row, and to those after it. Time n log(n)^2,
    memory n of many; of few n^2."""
    if rows.shape[1] < MANY:
        pairs = np.abs(rows[:, :, None] - rows[:, None, :])
        place = np.arange(rows.shape[1])
        earlier = np.where(place[None, :] < place[:, None], pairs, 0).sum(axis=2)
        return earlier, pairs.sum(axis=2) - earlier
    rows = rows - rows.mean(axis=1, keepdims=True)
    return np.array([*map(_by_halves, rows)]), np.array([_by_halves(row[::-1])[::-1] for row in rows])


def _by_halves(values: Column) -> Column:
    """Distances to earlier values: second halves of stretches of 2, 4, 8, ... values against the sorted first ones."""
    size = 1 << (len(values) - 1).bit_length()
    padded = np.concatenate([values, np.zeros(size - len(values))])
    ranks = np.empty(size, dtype=np.int64)
    ranks[np.argsort(padded)] = np.arange(size)
    ordered, sums = np.sort(padded), np.zeros(size)
    half = 1
    while half < size:
        rows = np.arange(size // (2 * half))[:, None]
        halves = ranks.reshape(-1, 2, half)
        first, second = np.sort(halves[:, 0], axis=1), halves[:, 1]
        below = np.searchsorted((first + rows * size).ravel(), second + rows * size) - rows * half
        reached = np.pad(np.cumsum(ordered[first], axis=1), ((0, 0), (1, 0)))
        further = reached[:, -1:] - 2 * np.take_along_axis(reached, below, axis=1)
        sums.reshape(-1, 2, half)[:, 1] += ordered[second] * (2 * below - half) + further
        half *= 2
    return np.asarray(sums[: len(values)])
