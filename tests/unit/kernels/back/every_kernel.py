"""Every kernel of the product, found where it is declared."""

from __future__ import annotations

import importlib
import pkgutil

import kernels.catalog
import kernels.lower.gpu
from kernels.source.kernel import Kernel
from kernels.source.tile import Tile


def _declared() -> dict[str, Kernel]:
    found = {}
    for package in (kernels.catalog, kernels.lower.gpu):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            values = vars(importlib.import_module(module.name)).values()
            found |= {kernel.name: kernel for kernel in values if isinstance(kernel, Kernel)}
    return found


KERNELS = _declared()


def small_tile(kernel: Kernel, size: int) -> Tile:
    """A tile of the kernel, of `size` where any number will do."""
    units = {"unit_rows": 16, "unit_columns": 16, "unit_depth": 16, "width": 32}
    eights = {"depth8": 2, "columns8": 8} if kernel.matrix_units else {}
    whole = {"down": 1, "columns": 64, "tile_depth": 64} if kernel.warpgroups else {}
    fixed = {"lanes": 4, "kw": 3, "matrices": 1, "wide": int(kernel.name.endswith("_wide")), **units, **eights, **whole}
    packed = {"bits": 2 + 2 * size, "block": 64, "group_size": 32 // size, "fields": 15 * (size - 1)}
    fixed |= packed if "bits" in kernel.tile.__dataclass_fields__ else {}
    fixed |= {} if "places" in kernel.ints else {"half4": 0}  # nothing is turned
    names = (name.lower() for name in kernel.tile.__dataclass_fields__)
    return kernel.tile(**{name: fixed.get(name, size) for name in names})
