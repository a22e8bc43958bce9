"""Numbers of a distribution, one at a time and drawn in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from .spec import Answer, Distribution

Draws: TypeAlias = Iterator[float]
CHUNK = 4096


def draws_of(distribution: Distribution, random: np.random.Generator) -> Draws:
    """Yield numbers without end."""
    while True:
        yield from distribution.draw(random, CHUNK).tolist()


def texts_of(answer: Answer, random: np.random.Generator) -> Iterator[tuple[float, float, int, int]]:
    """Yield prompts and answers without end: seconds of the prompt and behind it, and tokens of both."""
    while True:
        yield from zip(*(column.tolist() for column in answer.texts(random, CHUNK)), strict=True)
