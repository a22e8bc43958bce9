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

    @derived
    def tile_rows4(self) -> int:
        return self.gy * self.rv

    @derived
    def tile_columns4(self) -> int:
        return self.gx * self.cv

    @derived
    def tile_depth(self) -> int:
        return 4 * self.depth

    @derived
    def pitch(self) -> int:
        """Vectors of a row of the left operand, one more than it has, against conflicts of banks."""
        return self.tile_rows4 + 1

    @derived
    def sums(self) -> int:
        return 4 * self.rv * self.cv
