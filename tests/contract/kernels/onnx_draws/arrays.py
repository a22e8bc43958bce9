"""The parts of every draw: shapes, numbers, axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MOST_ELEMENTS = 4000

Array = np.ndarray[Any, Any]
Attributes = dict[str, Any]
Drawn = tuple[list[Array], Attributes]
"""Inputs, in their order, and attributes."""
Draw = Callable[[np.random.Generator], Drawn]


def shape_of(rng: np.random.Generator, ranks: Sequence[int] = (0, 1, 2, 3, 4, 5), largest: int = 7) -> tuple[int, ...]:
    rank = int(rng.choice(ranks))
    shape = tuple(int(extent) for extent in rng.integers(1, largest, rank))
    return shape if np.prod(shape, dtype=np.int64) <= MOST_ELEMENTS else shape_of(rng, ranks, max(2, largest - 1))


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return np.asarray(rng.standard_normal(shape), np.float32)


def partner(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another: some axes of one element, some missing in front."""
    kept = [1 if rng.random() < 0.35 else extent for extent in shape]
    return tuple(kept[int(rng.integers(0, len(kept) + 1)) if rng.random() < 0.4 else 0 :])


def ints(*values: int) -> Array:
    return np.asarray(values, np.int64)


def some_axes(rng: np.random.Generator, rank: int, least: int = 1) -> list[int]:
    chosen = rng.permutation(rank)[: int(rng.integers(least, rank + 1))]
    return [int(axis) - (rank if rng.random() < 0.5 else 0) for axis in chosen]
