"""The cost of a product with a tile, for comparing tiles: no time."""

from __future__ import annotations

import math

from kernels.catalog.desktop.cost import OF_PRODUCTS, desktop_cost
from kernels.catalog.product.depth_parts import depth_counts
from kernels.catalog.product.sizes import Product
from kernels.options import Limits, Options

from .tile import ProductTile

_BUSY = 2
"""Work-groups a compute unit that keep a phone's busy."""
_UNLIKE = 1.2
"""The cost of the other form of the loop: Vulkan's compilers like it without branches."""
_UNTIMED = 2.0
"""Keeps tiles that were timed on no phone from their defaults."""
_UNITS = 8
"""Compute units of a phone that does not tell."""


def cost(tile: ProductTile, product: Product, options: Options, limits: Limits) -> float:
    """Return a tile's cost: of two tiles of one product on one device, that of the lesser cost is tried first."""
    if limits.unified_memory:
        return _phone_cost(tile, product, options, limits)
    parts = parts_of_depth(tile, product, options, limits)
    return _desktop_cost(tile, product, parts, limits, options.backend)


def parts_of_depth(tile: ProductTile, product: Product, options: Options, limits: Limits) -> int:
    """Parts of the depth that several work-groups take, whose sums are added up after; 1: it is not divided."""
    counts = depth_counts(product, limits, tile.tile_depth)
    return min(counts, key=lambda parts: _desktop_cost(tile, product, parts, limits, options.backend))


def computed(tile: ProductTile, product: Product) -> int:
    """Outputs computed, those beyond the edges too."""
    return _tiles(tile, product) * tile.rows * tile.columns


def _tiles(tile: ProductTile, product: Product) -> int:
    return -(-product.rows // tile.rows) * -(-product.columns // tile.columns) * product.batch


def _phone_cost(tile: ProductTile, product: Product, options: Options, limits: Limits) -> float:
    """Multiply what is computed by what idles, the loads from local memory a multiplication, and what branches cost."""
    rounds = _tiles(tile, product) / (limits.compute_units or _UNITS)
    idle = math.ceil(rounds) / rounds if rounds > _BUSY else max(1.0, 1 / rounds)
    unlike = _UNLIKE if (options.backend == "vulkan") != bool(tile.ahead) else 1.0
    untimed = _UNTIMED if tile.is_wide else 1.0
    return untimed * unlike * computed(tile, product) * idle * (1 + 0.5 / tile.rv + 0.5 / tile.cv)


def _desktop_cost(tile: ProductTile, product: Product, parts: int, limits: Limits, api: str) -> float:
    results = product.rows * product.columns
    return desktop_cost(
        tile, OF_PRODUCTS[api], tiles=_tiles(tile, product), depth=product.depth, parts=parts, results=results,
        limits=limits, api=api,
    )  # fmt: skip
