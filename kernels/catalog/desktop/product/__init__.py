"""Matrix units: a subgroup multiplies small matrices of halves at once, with sums in single."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernels.catalog.desktop.units import cost
from kernels.catalog.desktop.units.choice import conflict, unit_tile, unit_tiles, why_no_units
from kernels.catalog.desktop.units.fragments import fragments, straightened
from kernels.catalog.desktop.units.tile import EXAMPLE, LOCAL, MEANING, Kind, UnitTile
from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.packing import padded
from kernels.catalog.product.depth_parts import depth_parts
from kernels.catalog.product.kernel_parts import BATCHED, BOUNDS, operands
from kernels.catalog.product.sizes import Product
from kernels.ir.graph import Array
from kernels.options import Backend, Limits, Options
from kernels.source.kernel import Buffer, Kernel, LocalArray

_MANY_ROWS = 512
_COSTS = {
    ("opencl", False): (cost.LocalCosts(9, 10, 0, 129, 768), 115),
    ("vulkan", False): (cost.LocalCosts(38, 56, 2, 233), 12),
    ("vulkan", True): (cost.LocalCosts(2.5, 46, 4, 513, 256, stage=7.7, ahead=0.957), 119),
}
"""Costs by API and whether there are many rows; and the cost of adding up parts of the depth, in loads that a work-item
waits for. Fitted to 4, 18 and 9 products on an H100, whose OpenCL takes `warpgroups` for
many."""
_MANY_STAGES = 16
"""The number of stages from which on one more that is fetched and not used costs less than conditions."""

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

_READ = (*KERNEL.buffers[:3], Buffer("columns_sum", storage="f32"))
NORMALISING = replace(
    KERNEL,
    name="matmul_units_norm",
    buffers=(*_READ, KERNEL.buffers[3]),
    floats=(*BOUNDS, "epsilon"),
    locals=(LOCAL, LocalArray("statistics", "STATISTICS", 1)),
)
"""The kernel for rows that are normalised on the way: it finds means and deviations beside the products, and takes from
these the mean times `columns_sum`, the sum of each column of the right operand."""


class MatrixUnits:
    """Products of halves, added up in single."""

    name = "matrix_units"
    summary = f"on matrix units, halves multiplied and singles added; tile: {MEANING}, e.g. {EXAMPLE}"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        turned = product.right_is_constant
        why = why_no_units(options, limits)
        if why is not None:
            return why
        within = limits.within(KERNEL.name)
        if tile:
            return conflict(unit_tile(tile, limits, turned=turned), within, options.backend, depth=product.depth)
        fitting = unit_tiles(within, options.backend, turned=turned, depth=product.depth)
        return None if fitting else "no tile fits the device's work-groups and local memory"

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        if self.why_not(product, options, limits) is not None:
            return []
        within = limits.within(KERNEL.name)
        fitting = unit_tiles(within, options.backend, turned=product.right_is_constant, depth=product.depth)
        fitting = [tile for tile in fitting if product.left_is_free or not tile.dealt]
        wanted = _wanted(product, options, limits)

        def order(tile: UnitTile) -> tuple[bool, bool, float]:
            return tile.kind != wanted, tile.straight, _cost(tile, product, options, limits)

        return [tile.words for tile in sorted(fitting, key=order)]

    def reads_dealt(self, product: Product, options: Options, limits: Limits, tile: str) -> bool:
        """Return whether this tile reads rows that lie as work-items have them of a matrix."""
        words = tile or self.tiles(product, options, limits)[0]
        return unit_tile(words, limits, turned=product.right_is_constant).dealt

    def normalises(self, product: Product, options: Options, limits: Limits, tile: str) -> bool:
        """Return whether a work-group of this tile reads whole rows, as work-items have them of a matrix."""
        words = tile or self.tiles(product, options, limits)[0]
        shape = unit_tile(words, limits, turned=product.right_is_constant)
        return shape.straight and _parts(shape, product, limits) == 1

    def lower(self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        words = tile or self.tiles(product, options, limits)[0]
        shape = unit_tile(words, limits, turned=product.right_is_constant)
        across, down = -(-product.columns4 // (2 * shape.tile_columns8)), -(-product.rows // shape.tile_rows)
        rest = product.rows % shape.tile_rows, product.columns % (8 * shape.tile_columns8)
        switches = {
            "WHOLE": int(not any(rest)),
            "AGAIN": int(product.depth % shape.tile_depth == 0 and product.depth >= _MANY_STAGES * shape.tile_depth),
            "FEW": shape.few_stages(product.depth),
            "EIGHTS_A": int(product.depth % 8 == 0),  # the lowering sees whether rows begin at such places
            "EIGHTS_B": int(product.columns4 % 2 == 0),
        }
        whole = _stays(shape, options.backend) and _parts(shape, product, limits) == 1
        dealt = whole and product.result_is_dealt and product.columns % 16 == 0
        paired = whole and not dealt and _is_paired(shape, product)
        switches |= {"DEALT_OUT": 1} if dealt else {"PAIRED": 1} if paired else {}
        weight = _packed(constants["weight"], shape, options.backend, paired=paired) if shape.turned else None
        ints = {} if weight is None else {"b_stride": weight[0].size // 8}
        parts = _parts(shape, product, limits)
        if parts > 1:
            deep = product.depth // parts
            switches["AGAIN"] = int(deep >= _MANY_STAGES * shape.tile_depth)
            switches["FEW"] = shape.few_stages(deep)
            apart = 2 * deep if shape.direct else deep // 8 if shape.turned else deep * product.columns4
            ints |= {"depth": deep, "a_batch": deep // 4, "b_batch": apart}
        first, then = across, down
        if _rows_first(shape, product, options.backend):
            first, then, switches["ROWS_FIRST"] = down, across, 1
        items = (first * shape.group, then, parts * product.batch)
        return (Call(KERNEL, items, shape, switches, ints, shape.group, weight, parts=parts),)


def _wanted(product: Product, options: Options, limits: Limits) -> Kind:
    """The kind of tiles that takes the least time for so many results."""
    work = _work(product)
    if product.left_is_free and options.backend == "vulkan" and cost.pays_dealt(work, limits):
        return "dealt"
    if cost.pays_straight(work, limits):
        return "straight"
    return "direct" if cost.pays_direct(work, limits) else "local"


def _rows_first(tile: UnitTile, product: Product, backend: Backend) -> bool:
    """Return whether work-groups that run at once share columns, whose weights they read from memory: it pays where
    there are more columns than depth."""
    return backend == "vulkan" and tile.kind == "direct" and product.columns > product.depth


def _stays(tile: UnitTile, backend: Backend) -> bool:
    """Return whether sums end in registers (`IN_REGISTERS`), where it is known who holds what of them."""
    return backend == "vulkan" and tile.kind in ("direct", "dealt")


def _is_paired(tile: UnitTile, product: Product) -> bool:
    """Return whether a work-item has eight adjacent columns of two matrices of sums, which it stores at once."""
    return tile.fc % 2 == 0 and product.columns % 32 == 0


def _packed(weight: Array, tile: UnitTile, backend: Backend, *, paired: bool) -> Array:
    if tile.straight:
        return fragments(straightened(weight), tile, backend)
    return fragments(weight, tile, backend, paired=paired) if tile.direct else turned(weight)


def turned(weight: Array) -> Array:
    """(depth, columns) -> (columns, depth), zero-padded to vectors of four columns and of eight deep."""
    return np.ascontiguousarray(padded(padded(weight, 1, 4), 0, 8).T)


def _parts(tile: UnitTile, product: Product, limits: Limits) -> int:
    if tile.dealt:
        return 1
    columns = 8 * tile.tile_columns8
    return depth_parts(product, limits, rows=tile.tile_rows, columns=columns, depth=tile.tile_depth)


def _cost(tile: UnitTile, product: Product, options: Options, limits: Limits) -> float:
    parts, many = _parts(tile, product, limits), product.rows >= _MANY_ROWS
    work = _work(product, parts)
    if tile.straight:
        return cost.straight(tile, work, limits) + (cost.ADDING_UP if parts > 1 else 0)
    if tile.dealt:
        return cost.dealt(tile, work, limits)
    if tile.direct:
        return cost.direct(tile, work, limits, cost.PRODUCTS[options.backend])
    costs, adding_up = _COSTS.get((options.backend, many), (cost.LOCAL, 40))
    return cost.local(tile, work, limits, costs) + (adding_up if parts > 1 else 0)


def _work(product: Product, parts: int = 1) -> cost.Work:
    return cost.Work(product.rows, 4 * product.columns4, product.depth // parts, product.batch * parts)
