"""What a product takes with a tile, for comparing tiles: no time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernels.catalog.product.depth_parts import depth_counts
from kernels.catalog.product.sizes import Product
from kernels.options import Limits, Options

from .tile import ProductTile

_BUSY = 2
"""Work-groups a compute unit that keep a phone's busy."""
_UNLIKE = 1.2
"""What the other form of the loop costs: Vulkan's compilers like it without branches (docs/decisions/0037)."""
_UNTIMED = 2.0
"""Keeps tiles that were timed on no phone from their defaults."""
_UNITS, _DESKTOP_UNITS = 8, 64
"""Compute units where the device does not tell: of a phone, and of a device with memory of its own."""
_REGISTERS, _MOST_REGISTERS, _ITEMS, _LOCAL_BYTES = 65536, 255, 2048, 228 << 10
"""Of a compute unit, of a work-item; work-items and local memory of a compute unit."""
_STEP = 128
"""Work-items that a compute unit's four schedulers take at once: fewer take as long."""
_SPILLED = 0.02
"""What a register takes that a work-item lacks, of the whole."""


@dataclass(frozen=True)
class _Costs:
    """What a product takes on a desktop GPU, in multiplications of a busy compute unit."""

    working: float
    """Work-items that keep a compute unit busy: fewer leave a part of it idle."""
    read: float
    """Reading a vector, by those that it is multiplied with."""
    stage: float
    """A stage, by its depth."""
    branches: float
    """What the loop with branches takes of the other's time."""
    registers: float
    """Of a work-item, beside its sums, its operands and what it fetches."""
    fetched: tuple[float, float]
    """Registers of a vector that is fetched: in the form of the loop that suits the API, and in the other."""
    divided: float
    """A depth that is divided: one more kernel."""
    moved: float
    """A number that a part of the depth writes, and that is read again."""


_COSTS = {
    "opencl": _Costs(301, 6.7, 1.9, 1.0, 11, (10.2, 18.6), 10.5e6, 2.05),
    "vulkan": _Costs(292, 5.0, 1.5, 1.08, 14, (9.5, 12.6), 5.6e6, 3.9),
}
"""By API: fitted to 20 products, every tile, one to eight parts of the depth, on an H100 (docs/decisions/0167)."""


def cost(tile: ProductTile, product: Product, options: Options, limits: Limits) -> float:
    """Of two tiles of one product on one device, that of the lesser cost is tried first."""
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
    """What is computed, times what idles, the loads from local memory a multiplication, and what branches cost."""
    rounds = _tiles(tile, product) / (limits.compute_units or _UNITS)
    idle = math.ceil(rounds) / rounds if rounds > _BUSY else max(1.0, 1 / rounds)
    unlike = _UNLIKE if (options.backend == "vulkan") != bool(tile.ahead) else 1.0
    untimed = _UNTIMED if tile.is_wide else 1.0
    return untimed * unlike * computed(tile, product) * idle * (1 + 0.5 / tile.rv + 0.5 / tile.cv)


def _desktop_cost(tile: ProductTile, product: Product, parts: int, limits: Limits, api: str) -> float:
    """Work-groups of a compute unit, as many at once as it has registers for; the last ones may be too few to keep it
    busy."""
    costs = _COSTS[api]
    groups = _tiles(tile, product) * parts
    registers = _registers(tile, costs, suits=bool(tile.ahead) == (api == "vulkan"))
    at_once = _at_once(tile, registers)
    full, rest = divmod(math.ceil(groups / (limits.compute_units or _DESKTOP_UNITS)), at_once)
    turns = full * _turn(tile, at_once, costs) + _turn(tile, rest, costs)
    loads = 1 + costs.read / tile.rv + costs.read / tile.cv + costs.stage / tile.depth
    loads *= 1.0 if tile.ahead else costs.branches
    loads *= 1 + _SPILLED * max(0.0, registers - _MOST_REGISTERS)
    added_up = costs.divided + costs.moved * parts * product.rows * product.columns if parts > 1 else 0.0
    return turns * tile.rows * tile.columns * product.depth / parts * loads + added_up


def _turn(tile: ProductTile, groups: int, costs: _Costs) -> float:
    """Of so many work-groups at once, in those of a busy compute unit."""
    items = _STEP * math.ceil(groups * tile.group / _STEP)
    return max(float(items), costs.working) / tile.group if groups else 0.0


def _registers(tile: ProductTile, costs: _Costs, *, suits: bool) -> float:
    """That a work-item wants; `suits`: the form of the loop suits the API."""
    fetched = costs.fetched[0 if suits else 1] * tile.fetched
    return 16 * tile.rv * tile.cv + 4 * (tile.rv + tile.cv) + fetched + costs.registers


def _at_once(tile: ProductTile, registers: float) -> int:
    """Work-groups of a compute unit."""
    held = 8 * math.ceil(min(registers, _MOST_REGISTERS) / 8)
    by_local = _LOCAL_BYTES // (tile.local_bytes + 1024)
    return max(1, min(_ITEMS // tile.group, _REGISTERS // (held * tile.group), by_local))
