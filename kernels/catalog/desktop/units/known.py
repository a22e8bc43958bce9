"""Tiles of kernels that keep matrices in registers, where it is known which of 32 work-items holds what of them."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.source.tile import Tile, derived

WIDTH, MATRIX = 32, 16
"""Work-items of a subgroup that multiplies matrices, and rows and columns of one."""


@dataclass(frozen=True)
class KnownTile(Tile):
    """Matrices are 16 x 16 x 16, of a subgroup of 32, and no operand passes through local memory."""

    @derived
    def width(self) -> int:
        return WIDTH

    @derived
    def turned(self) -> int:
        return 0

    @derived
    def unit_rows(self) -> int:
        return MATRIX

    @derived
    def unit_columns(self) -> int:
        return MATRIX

    @derived
    def unit_depth(self) -> int:
        return MATRIX

    @derived
    def sides(self) -> int:
        """None of local memory, as `UnitTile` has it."""
        return 5
