"""Tiles of kernels that keep matrices in registers, where it is known which of 32 work-items holds what of them."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.source.tile import Tile, derived

WIDTH, MATRIX = 32, 16
"""Work-items of a subgroup that multiplies matrices, and rows and columns of one."""


@dataclass(frozen=True)
class KnownTile(Tile):
    """Matrices are 16 x 16 x 16, of a subgroup of 32, and no operand passes through local memory."""

    width = derived(lambda _: WIDTH)
    turned = derived(lambda _: 0)
    unit_rows = derived(lambda _: MATRIX)
    unit_columns = derived(lambda _: MATRIX)
    unit_depth = derived(lambda _: MATRIX)
    sides = derived(lambda _: 5)
    """None of local memory, as `UnitTile` has it."""
