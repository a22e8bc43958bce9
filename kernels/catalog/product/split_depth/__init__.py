"""Few rows: a product is a matter of reading the matrix, so its depth is shared out over a work-group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.family import Call, Constants
from kernels.catalog.product.kernel_parts import BATCHED, BOUNDS, operands
from kernels.catalog.product.sizes import Product
from kernels.catalog.tile_text import numbers
from kernels.catalog.work_group import group_conflict
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel, LocalArray
from kernels.source.tile import SharedSum

_ACROSS = 8
"""Vectors of four columns of a work-group: what one read of a row of the matrix brings."""
_TURNS = 4
"""Vectors of the depth that a work-item reads at once: their reads overlap."""
_PARTS = 8
"""Parts of the depth from which on it pays."""


@dataclass(frozen=True)
class DepthTile(SharedSum):
    """`cx` vectors of columns; `turns`: vectors of the depth that a work-item reads at once."""

    turns: int


KERNEL = Kernel(
    "matvec",
    Path(__file__).with_name("kernel.c"),
    operands(4),
    BATCHED,
    BOUNDS,
    DepthTile,
    (LocalArray("partial", "SHARED"),),
    computes_in_half=True,
)


class SplitDepth:
    """Each work-item adds up part of the depth of one vector of columns; the parts meet in local memory."""

    name = "split_depth"
    summary = "the depth shared out over a work-group, for few rows; tile: vectors of columns x parts, e.g. 8x32"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does. Raises OptionError for a tile that is not known."""
        del options
        if not tile:
            return None if parts(product, limits) else f"its depth of {product.depth} is too little to share out"
        across, shared = numbers(tile, "vectors of columns x parts", "8x32")
        if shared & (shared - 1):
            return f"{shared} parts are no power of two"
        return group_conflict(limits.within(KERNEL.name), group=across * shared, local_bytes=16 * across * shared)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        group = parts(product, limits)
        default = [_words(min(_across(product, limits), group), group)] if group else []
        others = [_words(across, size) for size in (64, 128, 256, 512) for across in (1, 2, 4, 8, 16)]
        fitting = [
            tile
            for tile in others
            if self.why_not(product, options, limits, tile) is None and int(tile.split("x")[1]) <= product.depth // 4
        ]
        return list(dict.fromkeys([*default, *fitting]))

    def lower(
        self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        del constants
        words = tile or self.tiles(product, options, limits)[0]
        across, shared = numbers(words, "vectors of columns x parts", "8x32")
        shape = DepthTile(across, shared, _TURNS if product.depth // 4 >= _TURNS * shared else 1)
        work_items = -(-product.columns4 // across) * shape.shared, product.rows, product.batch
        return (Call(KERNEL, work_items, shape, group=shape.shared),)


def parts(product: Product, limits: Limits) -> int:
    """Work-items of the default work-group; 0 where the depth is too little to share out."""
    found = -(-product.depth // 4)
    if found < _PARTS:
        return 0
    most = min(256, limits.within(KERNEL.name).max_work_group or 64, *(limits.max_work_item_sizes[:1] or (256,)))
    return 1 << (min(most, found).bit_length() - 1)


def _across(product: Product, limits: Limits) -> int:
    """Half as wide where there would be fewer work-groups than compute units."""
    groups = -(-product.columns4 // _ACROSS) * product.rows * product.batch
    return _ACROSS if groups >= limits.compute_units else _ACROSS // 2


def _words(across: int, group: int) -> str:
    return f"{across}x{group // across}"
