"""One output a work-item, blocks of both operands through local memory (study P)."""

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
from kernels.source.tile import Tile, derived

_EDGES = ((16, 16), (8, 8), (16, 32), (32, 32))
"""Rows x columns of a block; the study's are the last three."""


@dataclass(frozen=True)
class Block(Tile):
    """`by` rows x `bx` columns of a work-group, `bk` deep a stage."""

    bx: int
    by: int
    bk: int

    group = derived(lambda tile: tile.bx * tile.by)
    """Work-items of a work-group."""
    block_a = derived(lambda tile: tile.by * tile.bk)
    block_b = derived(lambda tile: tile.bk * tile.bx)


KERNEL = Kernel(
    "matmul_blocked",
    Path(__file__).with_name("kernel.c"),
    operands(1),
    ("rows", *BATCHED),
    BOUNDS,
    Block,
    (LocalArray("tile_a", "BLOCK_A", 1), LocalArray("tile_b", "BLOCK_B", 1)),
)


class Blocked:
    """A work-group computes a block; its edges are the tile, `16x32`."""

    name = "blocked"
    summary = "one output a work-item, a block a work-group through local memory; tile: rows x columns, e.g. 16x32"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        block = _block(tile) if tile else min((_block_of(*edges) for edges in _EDGES), key=lambda one: one.group)
        local_bytes = KERNEL.local_bytes(block.constants)
        return group_conflict(limits.within(KERNEL.name), group=block.group, local_bytes=local_bytes)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        words = [f"{rows}x{columns}" for rows, columns in _EDGES]
        return [tile for tile in words if self.why_not(product, options, limits, tile) is None]

    def lower(self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        block = _block(tile or self.tiles(product, options, limits)[0])
        across, down = -(-4 * product.columns4 // block.bx), -(-product.rows // block.by)
        return (Call(KERNEL, (across * block.group, down, product.batch), block, group=block.group),)


def _block(tile: str) -> Block:
    rows, columns = numbers(tile, "rows x columns", "16x32")
    return _block_of(rows, columns)


def _block_of(rows: int, columns: int) -> Block:
    return Block(columns, rows, min(rows, columns))
