"""Values of blocks whose truth is known. It shares nothing with the product: own distributions, own truths."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

LEVEL_MS = 10.0
SECOND_LEVEL = 0.15


@dataclass(frozen=True)
class Shape:
    """The difference between blocks of one cell."""

    name: str
    kind: str
    spread: float
    """Standard deviation between blocks, as a share; of the logarithm where they are skewed."""
    correlation: float = 0.0
    """The correlation of a block with the next one."""
    share: float = 0.5
    """The share of blocks on the second level."""


SHAPES = (
    Shape("normal", "normal", 0.03),
    Shape("skewed", "skewed", 0.5),
    Shape("two levels 50/50", "levels", 0.01),
    Shape("two levels 80/20", "levels", 0.01, share=0.2),
    Shape("outliers (t2)", "outliers", 0.03),
    Shape("AR(0.3)", "normal", 0.03, correlation=0.3),
    Shape("AR(0.6)", "normal", 0.03, correlation=0.6),
)


def truth_ms(shape: Shape) -> float:
    """The median of all blocks that there could be."""
    if shape.kind != "levels":
        return LEVEL_MS
    low, high = -10.0, SECOND_LEVEL / shape.spread + 10
    for _ in range(100):
        middle = (low + high) / 2
        below = (1 - shape.share) * _phi(middle) + shape.share * _phi(middle - SECOND_LEVEL / shape.spread)
        low, high = (middle, high) if below < 0.5 else (low, middle)
    return LEVEL_MS * (1 + shape.spread * (low + high) / 2)


def _phi(value: float) -> float:
    return NormalDist().cdf(value)


def blocks_ms(shape: Shape, runs: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """`runs` rows of `count` blocks in order of time."""
    noise = rng.normal(size=(runs, count))
    for i in range(1, count):
        if shape.correlation:
            kept = np.sqrt(1 - shape.correlation**2)
            noise[:, i] = shape.correlation * noise[:, i - 1] + kept * noise[:, i]
    if shape.kind == "skewed":
        return LEVEL_MS * np.exp(shape.spread * noise)
    if shape.kind == "outliers":
        noise = rng.standard_t(2, size=(runs, count))
    second = SECOND_LEVEL * (rng.random((runs, count)) < shape.share) if shape.kind == "levels" else 0.0
    return np.maximum(LEVEL_MS * (1 + second + shape.spread * noise), 0.01)


def samples_ms(middles: np.ndarray, within: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` samples of each block around its middle."""
    return np.asarray(middles[..., None] * np.exp(within * rng.normal(size=(*middles.shape, count))))
