"""A register tile a work-item, and a large tile a work-group through local memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.product.kernel_parts import BATCHED, BOUNDS, operands
from kernels.catalog.product.sizes import Product
from kernels.catalog.work_group import group_conflict
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel, LocalArray

from .cost import computed, cost, parts_of_depth
from .tile import EXAMPLE, MEANING, TILES, ProductTile, parse

_USUAL = {"opencl": 256 * 128, "vulkan": 128 * 128}
"""Results of a tile, by API: of those that cost the same, what was best on an H100."""

KERNEL = Kernel(
    "matmul_tiled",
    Path(__file__).with_name("kernel.c"),
    operands(4),
    ("rows", *BATCHED),
    BOUNDS,
    ProductTile,
    (LocalArray("tile_a", "LOCAL_A", storage="computed"), LocalArray("tile_b", "LOCAL_B", storage="computed")),
    computes_in_half=True,
)


class Tiled:
    """The way for desktop GPUs: each number loaded from local memory is used four to sixteen times."""

    name = "tiled"
    summary = f"a register tile a work-item, a tile a group through local memory; tile: {MEANING}, e.g. {EXAMPLE}"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        shape = parse(tile) if tile else min(TILES, key=lambda one: (one.local_bytes, one.group))
        return group_conflict(limits.within(KERNEL.name), group=shape.group, local_bytes=shape.local_bytes)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        fitting = [tile for tile in TILES if self.why_not(product, options, limits, tile.words) is None]
        wasted = {tile: computed(tile, product) / (product.rows * product.columns * product.batch) for tile in fitting}
        least = min(wasted.values(), default=0)
        usable = [tile for tile in fitting if wasted[tile] <= max(4.0, least)]

        def order(tile: ProductTile) -> tuple[float, int, int]:  # of those that cost the same, what fills most units
            results, usual = tile.rows * tile.columns, _USUAL[options.backend]
            return float(f"{cost(tile, product, options, limits):.6g}"), -computed(tile, product), abs(results - usual)

        return [tile.words for tile in sorted(usable, key=order)]

    def lower(self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        shape = parse(tile or self.tiles(product, options, limits)[0])
        across, down = -(-4 * product.columns4 // shape.columns), -(-product.rows // shape.rows)
        rest = product.rows % shape.rows, 4 * product.columns4 % shape.columns, product.depth % shape.tile_depth
        whole = {"WHOLE": int(not any(rest))}
        parts, ints = parts_of_depth(shape, product, options, limits), {}
        if parts > 1:
            deep = product.depth // parts
            ints = {"depth": deep, "a_batch": deep // 4, "b_batch": deep * product.columns4}
        items = (across * shape.group, down, parts * product.batch)
        return (Call(KERNEL, items, shape, whole, ints, group=shape.group, parts=parts),)
