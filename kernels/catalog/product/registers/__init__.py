"""A tile of rows and vectors of columns a work-item, without local memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.product.kernel_parts import BATCHED, BOUNDS, operands
from kernels.catalog.product.sizes import Product
from kernels.catalog.tile_text import numbers
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel
from kernels.source.tile import Tile, derived

_WIDTHS = (16, 8, 4)
_MAX_SUMS = 512
"""Numbers of a tile, at most."""
_ROWS = (1, 2, 4, 8, 16)
_VECTORS = (1, 2, 4)


@dataclass(frozen=True)
class RegisterTile(Tile):
    """`rows` rows x `columns` vectors of `lanes` columns."""

    rows: int
    columns: int
    lanes: int

    parts = derived(lambda tile: tile.lanes // 4)
    """Vectors of four columns of a vector."""
    sums = derived(lambda tile: tile.rows * tile.columns)

    @property
    def columns4(self) -> int:
        """Vectors of four columns."""
        return self.columns * self.parts

    @property
    def words(self) -> str:
        """The text that `--product 'registers 8x1x16'` takes."""
        return f"{self.rows}x{self.columns}x{self.lanes}"

    def why_not(self, product: Product, options: Options) -> str | None:
        """Return why it does not fit; None: it does."""
        if self.lanes not in _WIDTHS:
            return f"its vectors have {self.lanes} lanes, not 4, 8 or 16"
        if self.lanes > 4 and options.backend == "vulkan":
            return "Vulkan's vectors have four lanes"
        if self.sums * self.lanes > _MAX_SUMS:
            return f"it has {self.sums * self.lanes} sums, more than {_MAX_SUMS}"
        if self.columns4 > product.columns4:
            return f"it is {4 * self.columns4} columns wide, the product {product.columns}"
        return None


KERNEL = Kernel(
    "matmul_registers",
    Path(__file__).with_name("kernel.c"),
    operands(4),
    ("rows", *BATCHED),
    BOUNDS,
    RegisterTile,
    computes_in_half=True,
)


class Registers:
    """The best way for a CPU behind a GPU interface: its vectors are as wide as the processor's (`output_tile.py`)."""

    name = "registers"
    summary = "a tile a work-item without local memory; tile: rows x vectors x lanes (4, 8, 16), e.g. 8x1x16"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        if not tile:
            return None
        return parse_tile(tile).why_not(product, options)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        default = default_tile(product, options, limits)
        found = register_tiles(product, options, limits)
        return list(dict.fromkeys([default.words, *(tile.words for tile in found)]))

    def lower(self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        shape = parse_tile(tile) if tile else default_tile(product, options, limits)
        work_items = -(-product.columns4 // shape.columns4), -(-product.rows // shape.rows), product.batch
        return (Call(KERNEL, work_items, shape, tail(product)),)


def tail(product: Product) -> dict[str, int]:
    """The switch of kernels that read the depth by fours: whether some of it is left over."""
    return {"TAIL": int(product.depth % 4 > 0)}


def register_tiles(product: Product, options: Options, limits: Limits) -> list[RegisterTile]:
    """Return the tiles worth trying."""
    smallest, largest = (16, 256) if limits.cpu_device else (4, 64)
    widths = _WIDTHS if options.backend == "opencl" else (4,)
    tiles = [RegisterTile(rows, vectors, lanes) for lanes in widths for rows in _ROWS for vectors in _VECTORS]
    return [
        tile
        for tile in tiles
        if smallest <= tile.sums * tile.lanes <= largest
        and tile.rows < 2 * product.rows
        and tile.why_not(product, options) is None
    ]


def parse_tile(tile: str) -> RegisterTile:
    return RegisterTile(*numbers(tile, "rows x vectors x lanes", "8x1x16"))


def default_tile(product: Product, options: Options, limits: Limits) -> RegisterTile:
    if not limits.cpu_device:
        rows, vectors, widest = (4 if limits.unified_memory else 8), 2, 4
    elif options.backend == "opencl":
        rows, vectors, widest = 8, 1, 16
    else:
        rows, vectors, widest = 4, 2, 4
    lanes = next(lanes for lanes in _WIDTHS if lanes <= min(widest, 4 * product.columns4))
    fitting = product.columns4 * 4 // lanes
    return RegisterTile(1 if product.rows == 1 else rows, min(vectors, fitting), lanes)
