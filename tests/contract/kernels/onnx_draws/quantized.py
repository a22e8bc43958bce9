"""Numbers of eight bits with scales."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array, Draw, Drawn, normal, shape_of
from .layers import windows

_KINDS = (np.int8, np.uint8)


def _scale(rng: np.random.Generator, *shape: int) -> Array:
    return np.asarray(rng.uniform(0.01, 0.1, shape), np.float32)


def _whole(rng: np.random.Generator, kind: Any, *shape: int) -> Array:
    return np.asarray(rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape), kind)


def linear(dequantize: bool) -> Draw:
    """A draw with one scale, or one for each place along an axis; with and without a zero point."""

    def draw(rng: np.random.Generator) -> Drawn:
        shape, kind = shape_of(rng, (1, 2, 3, 4)), _KINDS[int(rng.integers(2))]
        axis = int(rng.integers(len(shape)))
        many = (shape[axis],) if rng.random() < 0.5 else ()
        x = _whole(rng, kind, *shape) if dequantize else 4 * normal(rng, *shape)
        zero = [_whole(rng, kind, *many)] if rng.random() < 0.7 else []
        return [x, _scale(rng, *many), *zero], {"axis": axis - (len(shape) if rng.random() < 0.5 else 0)}

    return draw


def integer_product(scaled: bool) -> Draw:
    """A product of whole numbers, with scales or without; those of the second may go by its columns."""

    def draw(rng: np.random.Generator) -> Drawn:
        m, k, n = (int(extent) for extent in rng.integers(1, 20, 3))
        many = (n,) if rng.random() < 0.5 else ()
        first, second = (np.uint8, _KINDS[int(rng.integers(2))])
        a, b = _whole(rng, first, m, k), _whole(rng, second, k, n)
        zeros = _whole(rng, first), _whole(rng, second, *many)
        if not scaled:
            return [a, b, *zeros], {}
        return [a, _scale(rng), zeros[0], b, _scale(rng, *many), zeros[1], 9 * _scale(rng), _whole(rng, first)], {}

    return draw


def integer_window(scaled: bool) -> Draw:
    """A convolution's windows of whole numbers; each filter may have a scale of its own."""

    def draw(rng: np.random.Generator) -> Drawn:
        (x, weight, *bias), found = windows("conv")(rng)
        m, kind = weight.shape[0], _KINDS[int(rng.integers(2))]
        x, weight = _whole(rng, np.uint8, *x.shape), _whole(rng, kind, *weight.shape)
        off = _whole(rng, np.uint8)
        if not scaled:
            return [x, weight, off, np.zeros((), kind)], found
        scales = _scale(rng, *((m,) if rng.random() < 0.5 else ()))
        more = [np.asarray(rng.integers(-5000, 5000, m), np.int32)] if bias else []
        zeros = np.zeros(scales.shape, kind)
        return [x, _scale(rng), off, weight, scales, zeros, 9 * _scale(rng), _whole(rng, np.uint8), *more], found

    return draw
