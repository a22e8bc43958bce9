"""A tensor seen as images of channels."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from .graph import Node

TO_IMAGE, TO_ROWS = (0, 3, 1, 2), (0, 2, 3, 1)
"""The transpositions that make an image of rows of channels, (N, h, w, C), and rows of an image."""


@dataclass(frozen=True)
class Dims:
    """Sizes of a tensor as images of channels: rank 4 as it is, rank 2 with one pixel, any other as one flat row.

    The "channels" of a flat row are its elements: only what works element by element may use them (`has_channels`).
    """

    n: int
    c: int
    h: int
    w: int

    @property
    def hw(self) -> int:
        return self.h * self.w

    @property
    def stacks(self) -> int:
        return -(-self.c // 4)

    @property
    def elements(self) -> int:
        return self.n * self.c * self.hw

    @property
    def packed_elements(self) -> int:
        return self.n * self.stacks * 4 * self.hw


def has_channels(shape: tuple[int, ...]) -> bool:
    """Return whether the stacks of a tensor are of its channels (axis 1)."""
    return len(shape) in (2, 4)


def dims_of(shape: tuple[int, ...]) -> Dims:
    """See `Dims`."""
    if len(shape) == 4:
        return Dims(*shape)
    if len(shape) == 2:
        return Dims(shape[0], shape[1], 1, 1)
    return Dims(1, prod(shape), 1, 1)


def is_turn(node: Node | None, perm: tuple[int, ...]) -> bool:
    """Return whether a node transposes just so."""
    return node is not None and node.op == "transpose" and tuple(node.attributes["perm"]) == perm
