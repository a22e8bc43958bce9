"""Operators of each element: values, broadcasts, bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import Draw, Drawn, normal, partner, shape_of


def unary(positive: bool = False, most: float = 1.0, **attributes: Sequence[Any]) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        x = normal(rng, *shape_of(rng)) * np.float32(3 * most)
        x = np.abs(x) + np.float32(0.01) if positive else x
        x = np.tanh(x) * np.float32(0.99 * most) if most < 1 else x
        return [np.asarray(x)], {key: values[int(rng.integers(len(values)))] for key, values in attributes.items()}

    return draw


def binary(*, positive: bool = False, whole: bool = False, one_way: bool = False, **attributes: Any) -> Draw:
    def draw(rng: np.random.Generator) -> Drawn:
        shape = shape_of(rng)
        a, b = normal(rng, *(shape if one_way else partner(rng, shape))), normal(rng, *partner(rng, shape))
        if positive:
            a, b = np.abs(a) + np.float32(0.1), b
        if whole:
            a, b = np.round(a), np.round(b)
        return [np.asarray(a), np.asarray(b)], dict(attributes)

    return draw


def truths(rng: np.random.Generator) -> Drawn:
    shape = shape_of(rng)
    return [np.asarray(rng.random(partner(rng, shape)) < 0.5), np.asarray(rng.random(partner(rng, shape)) < 0.5)], {}


def where(rng: np.random.Generator) -> Drawn:
    shape = shape_of(rng)
    condition = np.asarray(rng.random(partner(rng, shape)) < 0.5)
    return [condition, normal(rng, *partner(rng, shape)), normal(rng, *partner(rng, shape))], {}


def bits(rng: np.random.Generator) -> Drawn:
    kind, shape = rng.choice([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64]), shape_of(rng)
    low, high = max(np.iinfo(kind).min, -(1 << 24)), min(np.iinfo(kind).max, 1 << 24)
    return [np.asarray(rng.integers(low, high + 1, partner(rng, shape)), kind) for _ in range(2)], {}


def flipped(rng: np.random.Generator) -> Drawn:
    return bits(rng)[0][:1], {}


def shift(rng: np.random.Generator) -> Drawn:
    shape = shape_of(rng)
    x = np.asarray(rng.integers(0, 256, partner(rng, shape)), np.uint8)
    by = np.asarray(rng.integers(0, 8, partner(rng, shape)), np.uint8)
    return [x, by], {"direction": str(rng.choice(["LEFT", "RIGHT"]))}


def clip(rng: np.random.Generator) -> Drawn:
    return [normal(rng, *shape_of(rng)), np.float32(-0.5), np.asarray(np.float32(rng.random()))], {}
