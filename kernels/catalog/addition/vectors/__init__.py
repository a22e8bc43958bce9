"""Vectors of four numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.addition.sizes import Addition
from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.tile_text import numbers
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, result, view
from kernels.source.tile import Tile

_VECTORS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Vector(Tile):
    """Vectors of four of a work-item."""

    each: int


KERNEL = Kernel(
    "binary",
    Path(__file__).with_name("kernel.c"),
    (Buffer("a"), Buffer("b"), result("dst")),
    (*view("a"), *view("b"), *view("dst"), "stacks", "hw", "multiply", "by_channel", "activation"),
    ("lo", "hi"),
    Vector,
    computes_in_half=True,
)
"""b is a tensor of the same shape (by_channel 0), or one vector a stack (by_channel 1)."""


class Vectors:
    """Vectors of four; more of them a work-item for fewer, longer work-items."""

    name = "vectors"
    summary = "vectors of four; tile: vectors a work-item, e.g. 2"

    def why_not(self, sizes: Addition, options: Options, limits: Limits, tile: str = "") -> str | None:
        if tile and _parse(tile) > max(_VECTORS):
            return f"a work-item adds {max(_VECTORS)} vectors at most"
        return None

    def tiles(self, sizes: Addition, options: Options, limits: Limits) -> Sequence[str]:
        return [str(count) for count in _VECTORS if count == 1 or count <= sizes.vectors]

    def lower(self, sizes: Addition, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        count = _parse(tile or "1")
        ints = {"by_channel": int(sizes.by_channel)}
        return (Call(KERNEL, (-(-sizes.vectors // count), 1, sizes.pictures), Vector(count), ints=ints),)


def _parse(tile: str) -> int:
    (count,) = numbers(tile, "vectors a work-item", "2")
    return count
