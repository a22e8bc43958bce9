"""Where there are fewer tiles than compute units, several work-groups share out the depth of a tile."""

from __future__ import annotations

from kernels.catalog.product.sizes import Product
from kernels.options import Limits

_FEWEST, _MANY = 4, 12
"""Stages of a part, and of a depth that is worth dividing: adding up the parts takes as long as some stages."""
_MOST = 8
_UNITS = 64
"""Compute units where the device does not tell."""


def depth_parts(product: Product, limits: Limits, *, rows: int, columns: int, depth: int) -> int:
    """Into how many equal parts of whole stages the depth goes, of tiles of this size; 1: it is not divided.

    Only on a GPU with memory of its own: others have few units.
    """
    if product.batch > 1 or product.depth % depth or limits.unified_memory or limits.cpu_device:
        return 1
    groups, stages = -(-product.rows // rows) * -(-product.columns // columns), product.depth // depth
    units = limits.compute_units or _UNITS
    if 2 * groups > 3 * units or stages < _MANY:
        return 1
    counts = [n for n in range(1, _MOST + 1) if stages % n == 0 and stages // n >= _FEWEST and n * groups <= 2 * units]
    return max(counts, default=1)
