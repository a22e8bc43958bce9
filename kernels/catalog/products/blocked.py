"""One output a work-item, blocks of both operands through local memory (study P)."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.catalog.words import numbers
from kernels.catalog.work_group import group_conflict
from kernels.options import Limits, Options

from .facts import Product, ProductCall

_EDGES = ((16, 16), (8, 8), (16, 32), (32, 32))
"""Rows x columns of a block; the study's are the last three."""


class Blocked:
    """A work-group computes a block; its edges are the tile, `16x32`."""

    name = "blocked"
    summary = "one output a work-item, a block a work-group through local memory; tile: rows x columns, e.g. 16x32"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does. Raises OptionError for a tile that is not known."""
        del product, options
        rows, columns = _edges(tile) if tile else min(_EDGES)
        depth = min(rows, columns)
        return group_conflict(
            limits.within("matmul_blocked"), group=rows * columns, local_bytes=4 * depth * (rows + columns)
        )

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        words = [f"{rows}x{columns}" for rows, columns in _EDGES]
        return [tile for tile in words if self.why_not(product, options, limits, tile) is None]

    def lower(self, product: Product, options: Options, limits: Limits, tile: str = "") -> ProductCall:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        rows, columns = _edges(tile or self.tiles(product, options, limits)[0])
        work_items = (
            -(-4 * product.columns4 // columns) * rows * columns, -(-product.rows // rows), product.batch
        )  # fmt: skip
        tunables = {"BX": columns, "BY": rows, "BK": min(rows, columns)}
        return ProductCall("matmul_blocked", tunables, work_items, rows * columns)


def _edges(tile: str) -> tuple[int, int]:
    rows, columns = numbers(tile, "rows x columns", "16x32")
    return rows, columns
