"""Few rows: a product is a matter of reading the matrix, so its depth is shared out over a work-group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.product.kernel_parts import BATCHED, BOUNDS, operands
from kernels.catalog.product.sizes import Product
from kernels.catalog.tile_text import numbers
from kernels.catalog.work_group import group_conflict
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel, LocalArray
from kernels.source.tile import SharedSum, derived

_ACROSS = 8
"""Vectors of four columns of a work-group: what one read of a row of the matrix brings."""
_READ = 16
"""Vectors that a work-item reads at once, so that their reads overlap: of the matrix, and of its rows."""
_MEANING, _EXAMPLE = "vectors of columns x parts x rows", "8x32x4"
_MOST_ROWS, _MOST_ROWS_OF_A_PHONE = 16, 4
"""Rows of a work-item, as many as registers hold sums of."""
_GROUP, _LARGE_GROUP, _ROWS_IN_LARGE = 256, 512, 8
"""Work-items of a work-group, and of a desktop GPU's for so many rows; for more registers run out (0086)."""
_PARTS = 8
"""Parts of the depth from which on it pays."""


@dataclass(frozen=True)
class DepthTile(SharedSum):
    """`cx` vectors of columns of `rows` rows; `turns`: vectors of the depth that a work-item reads at once."""

    rows: int
    turns: int

    @property
    def words(self) -> str:
        """The text that `--product 'split_depth 8x32x4'` takes."""
        return f"{self.cx}x{self.ky}" + (f"x{self.rows}" if self.rows > 1 else "")

    sums = derived(lambda tile: tile.rows)
    upper = derived(lambda tile: max(1, tile.shared // 2))
    """Partial sums of a row that wait in local memory: those of the upper half of the work-items."""
    waiting = derived(lambda tile: tile.rows * tile.upper)


KERNEL = Kernel(
    "matvec",
    Path(__file__).with_name("kernel.c"),
    operands(4),
    ("rows", *BATCHED),
    BOUNDS,
    DepthTile,
    (LocalArray("partial", "WAITING"),),
    computes_in_half=True,
)


class SplitDepth:
    """Each work-item adds up part of the depth of one vector of columns, of several rows; parts meet in local memory.

    What it reads of the matrix serves all of its rows.
    """

    name = "split_depth"
    summary = f"the depth shared out over a work-group, for few rows; tile: {_MEANING}, e.g. {_EXAMPLE}"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        if not tile:
            return None if parts(product, limits) else f"its depth of {product.depth} is too little to share out"
        shape = _parse(tile, product)
        if shape.ky & (shape.ky - 1):
            return f"{shape.ky} parts are no power of two"
        return group_conflict(limits.within(KERNEL.name), group=shape.shared, local_bytes=16 * shape.waiting)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        group = parts(product, limits)
        if not group:
            return []
        default = _default(product, limits, group).words
        others = [
            _tile(product, across, size // across, rows).words
            for size in (64, 128, 256, 512)
            for across in (1, 2, 4, 8, 16)
            for rows in _rows_worth_trying(product)
            if size // across <= product.depth // 4
        ]
        fitting = [tile for tile in others if self.why_not(product, options, limits, tile) is None]
        return list(dict.fromkeys([default, *fitting]))

    def lower(self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        shape = _parse(tile, product) if tile else _default(product, limits, parts(product, limits))
        across, down = -(-product.columns4 // shape.cx), -(-product.rows // shape.rows)
        return (Call(KERNEL, (across * shape.shared, down, product.batch), shape, group=shape.shared),)


def parts(product: Product, limits: Limits) -> int:
    """Work-items of the default work-group; 0 where the depth is too little to share out."""
    found = -(-product.depth // 4)
    if found < _PARTS:
        return 0
    return 1 << (min(_most_work_items(limits, _GROUP), found).bit_length() - 1)


def _most_work_items(limits: Limits, wanted: int) -> int:
    return min(wanted, limits.within(KERNEL.name).max_work_group or 64, *(limits.max_work_item_sizes[:1] or (wanted,)))


def _default(product: Product, limits: Limits, group: int) -> DepthTile:
    """Take as many rows as leave a work-group for every second compute unit; half as wide where one row leaves
    fewer."""
    across, most = _ACROSS, _MOST_ROWS_OF_A_PHONE if limits.unified_memory else _MOST_ROWS
    rows = next(
        (rows for rows in _even_rows(product, most) if 2 * _groups(product, across, rows) >= limits.compute_units), 1
    )
    if _groups(product, across, rows) < limits.compute_units and rows == 1:
        across //= 2
    if 1 < rows <= _ROWS_IN_LARGE and not limits.unified_memory and product.depth >= 4 * _LARGE_GROUP:
        group = max(group, 1 << (_most_work_items(limits, _LARGE_GROUP).bit_length() - 1))
    across = min(across, group)
    return _tile(product, across, group // across, rows)


def _groups(product: Product, across: int, rows: int) -> int:
    return -(-product.columns4 // across) * -(-product.rows // rows) * product.batch


def _even_rows(product: Product, most: int) -> list[int]:
    """Rows a work-item, at most so many, that leave the fewest over; most first."""
    blocks = range(-(-product.rows // most), product.rows + 1)
    return list(dict.fromkeys(-(-product.rows // count) for count in blocks))


def _rows_worth_trying(product: Product) -> list[int]:
    return list(dict.fromkeys(_even_rows(product, most)[0] for most in (1, 2, 4, 8, 16)))


def _tile(product: Product, across: int, shared: int, rows: int) -> DepthTile:
    turns = max(1, min(4, _READ // (4 + rows)))
    return DepthTile(across, shared, rows, turns if product.depth // 4 >= turns * shared else 1)


def _parse(tile: str, product: Product) -> DepthTile:
    """`8x32` is of one row."""
    return _tile(product, *numbers(tile if tile.count("x") > 1 else f"{tile}x1", _MEANING, _EXAMPLE))
