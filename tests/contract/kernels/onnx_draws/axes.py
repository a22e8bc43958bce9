"""Operators along axes: reductions, normalisations, sums so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import Draw, Drawn, ints, normal, shape_of, some_axes


def reduction(by_attribute: bool = False) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        x = normal(rng, *shape_of(rng, (1, 2, 3, 4, 5)))
        axes, attributes = some_axes(rng, x.ndim), {"keepdims": int(rng.integers(2))}
        if by_attribute:
            return [x], {**attributes, "axes": axes}
        return [x, ints(*axes)], attributes

    return draw


def along(ranks: Sequence[int] = (1, 2, 3, 4, 5), **attributes: Sequence[Any]) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        x = normal(rng, *shape_of(rng, ranks))
        drawn = {key: values[int(rng.integers(len(values)))] for key, values in attributes.items()}
        return [x], {"axis": int(rng.integers(-x.ndim, x.ndim)), **drawn}

    return draw


def layer_norm(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3, 4)))
    axis = int(rng.integers(-x.ndim, x.ndim))
    inner = x.shape[axis:] if axis >= 0 else x.shape[x.ndim + axis :]
    return [x, normal(rng, *inner), *([normal(rng, *inner)] if rng.random() < 0.5 else [])], {"axis": axis}


def channel_norm(kind: str) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        groups = int(rng.integers(1, 4))
        c = groups * int(rng.integers(1, 5))
        x = normal(rng, int(rng.integers(1, 3)), c, *shape_of(rng, (1, 2, 3), 6))
        scale, shift = normal(rng, c), normal(rng, c)
        if kind == "batch":
            return [x, scale, shift, normal(rng, c), np.abs(normal(rng, c)) + np.float32(0.1)], {}
        return [x, scale, shift], {"epsilon": 1e-3}

    return draw


def cumulated(rng: np.random.Generator) -> Drawn:
    x = normal(rng, *shape_of(rng, (1, 2, 3)))
    axis = np.asarray(int(rng.integers(-x.ndim, x.ndim)), np.int64)
    return [x, axis], {"exclusive": int(rng.integers(2)), "reverse": int(rng.integers(2))}
