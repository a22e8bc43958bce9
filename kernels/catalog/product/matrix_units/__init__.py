"""Matrix units: a subgroup multiplies small matrices of halves at once, with sums in single."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernels.catalog.family import Call, Constants
from kernels.catalog.packing import padded
from kernels.catalog.product.kernel_parts import BATCHED, BOUNDS, operands
from kernels.catalog.product.sizes import Product
from kernels.catalog.unit_tile import (
    EXAMPLE,
    LOCAL,
    MEANING,
    UnitTile,
    conflict,
    cost,
    unit_tile,
    unit_tiles,
    why_no_units,
)
from kernels.ir.graph import Array
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel

_MANY_STAGES = 16
"""From so many on, one more that is fetched and not used costs less than conditions."""

KERNEL = Kernel(
    "matmul_units",
    Path(__file__).with_name("kernel.c"),
    operands(4),
    ("rows", *BATCHED),
    BOUNDS,
    UnitTile,
    (LOCAL,),
    matrix_units=True,
)


class MatrixUnits:
    """Products of halves, added up in single."""

    name = "matrix_units"
    summary = f"on matrix units, halves multiplied and singles added; tile: {MEANING}, e.g. {EXAMPLE}"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does. Raises OptionError for a tile that is not known."""
        turned = product.right_is_constant
        why = why_no_units(options, limits)
        if why is not None:
            return why
        within = limits.within(KERNEL.name)
        if tile:
            return conflict(unit_tile(tile, limits, turned=turned), within)
        return None if unit_tiles(within, turned=turned) else "no tile fits the device's work-groups and local memory"

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        if self.why_not(product, options, limits) is not None:
            return []
        fitting = unit_tiles(limits.within(KERNEL.name), turned=product.right_is_constant)
        return [tile.words for tile in sorted(fitting, key=lambda tile: cost(tile, limits, **_work(product)))]

    def lower(
        self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        words = tile or self.tiles(product, options, limits)[0]
        shape = unit_tile(words, limits, turned=product.right_is_constant)
        across, down = -(-product.columns4 // (2 * shape.tile_columns8)), -(-product.rows // shape.tile_rows)
        rest = product.rows % shape.tile_rows, product.columns % (8 * shape.tile_columns8)
        switches = {
            "WHOLE": int(not any(rest)),
            "AGAIN": int(product.depth % shape.tile_depth == 0 and product.depth >= _MANY_STAGES * shape.tile_depth),
            "EIGHTS_A": int(product.depth % 8 == 0 and not product.right_is_constant),  # of a dense layer, any stride
            "EIGHTS_B": int(product.columns4 % 2 == 0),
        }
        weight = _turned(constants["weight"]) if shape.turned else None
        ints = {} if weight is None else {"b_stride": weight.shape[1] // 8}
        call = Call(KERNEL, (across * shape.group, down, product.batch), shape, switches, ints, shape.group, weight)
        return (call,)


def _turned(weight: Array) -> Array:
    """(depth, columns) -> (columns, depth), zero-padded to vectors of four columns and of eight deep."""
    return np.ascontiguousarray(padded(padded(weight, 1, 4), 0, 8).T)


def _work(product: Product) -> dict[str, int]:
    return {
        "rows": product.rows, "columns": 4 * product.columns4, "depth": product.depth, "matrices": product.batch,
    }  # fmt: skip
