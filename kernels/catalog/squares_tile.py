"""The tile of a product whose work-items compute squares of 4 x 4 numbers of two operands in local memory."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.source.tile import Tile, derived


@dataclass(frozen=True)
class SquaresTile(Tile):
    """`gx` x `gy` work-items (columns x rows), each `rv` vectors of four rows x `cv` vectors of four columns; `depth`
    vectors of four deep a stage."""

    gx: int
    gy: int
    rv: int
    cv: int
    depth: int

    tile_rows4 = derived(lambda tile: tile.gy * tile.rv)
    tile_columns4 = derived(lambda tile: tile.gx * tile.cv)
    tile_depth = derived(lambda tile: 4 * tile.depth)
    pitch = derived(lambda tile: tile.tile_rows4 + 1)
    """Vectors of a row of the left operand, one more than it has, against conflicts of banks."""
    sums = derived(lambda tile: 4 * tile.rv * tile.cv)
