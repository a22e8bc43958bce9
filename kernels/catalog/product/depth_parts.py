"""Several work-groups share out the depth of a tile, where there are fewer tiles than compute units."""

from __future__ import annotations

from kernels.catalog.product.sizes import Product
from kernels.options import Limits

_FEWEST, _MANY = 4, 12
"""Stages of a part, and of a depth that is worth dividing: adding up the parts takes as long as some stages."""
_MOST = 8
_UNITS = 64
"""Compute units where the device does not tell."""


def depth_counts(product: Product, limits: Limits, depth: int) -> list[int]:
    """Return into how many equal parts of whole stages, each so deep, the depth may go: 1 first, which is not divided.

    Only on a GPU with memory of its own: others have few units.
    """
    stages = product.depth // depth
    is_whole = product.batch == 1 and product.depth % depth == 0 and stages >= _MANY
    if not is_whole or limits.unified_memory or limits.cpu_device:
        return [1]
    return [n for n in range(1, _MOST + 1) if stages % n == 0 and stages // n >= _FEWEST]


def depth_parts(product: Product, limits: Limits, *, rows: int, columns: int, depth: int) -> int:
    """Return into how many parts it goes, of tiles of this size: as many as keep each unit at two work-groups."""
    groups = -(-product.rows // rows) * -(-product.columns // columns)
    units = limits.compute_units or _UNITS
    if 2 * groups > 3 * units:
        return 1
    return max((n for n in depth_counts(product, limits, depth) if n * groups <= 2 * units), default=1)
