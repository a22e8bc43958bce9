"""About the time of matrix products on a device, for comparing tiles of one kind, and which kind pays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from kernels.catalog.desktop.units.tile import UnitTile
from kernels.options import Limits

_UNITS, _REGISTERS = 64, 65536
"""Compute units where the device does not tell, and registers of one."""
_MOST_REGISTERS = 255
"""Registers of a work-item."""
_RESULTS, _DEALT_RESULTS = 7500, 25000
"""Results of a compute unit from which on `direct` takes less than `local`; and as many as `dealt` was measured
with."""
_ROWS = 64
"""The fewest rows that `straight` was measured with."""


class Work(NamedTuple):
    """Products of (rows, depth) and (depth, columns)."""

    rows: int
    columns: int
    depth: int
    matrices: int

    def per_unit(self, limits: Limits) -> float:
        """Results of a compute unit."""
        return self.rows * self.columns * self.matrices / (limits.compute_units or _UNITS)

    def turns(self, tile: UnitTile, limits: Limits) -> int:
        """Work-groups that a compute unit computes."""
        groups = -(-self.rows // tile.tile_rows) * -(-self.columns // (8 * tile.tile_columns8)) * self.matrices
        return math.ceil(groups / (limits.compute_units or _UNITS))


@dataclass(frozen=True)
class LocalCosts:
    """The parts of a device's time, in loads that a work-item waits for."""

    begin: float = 8
    """Stages that pass before the first sum."""
    finish: float = 16
    """A matrix that is written."""
    one_side: float = 2
    """One more barrier."""
    read: float = 350
    """Vectors that are read from local memory in the time of one load."""
    at_once: int = 512
    """Work-items of a compute unit whose loads overlap."""
    stage: float = 0
    """A stage, beside its loads."""
    ahead: float = 1.2
    """The share of the other way's time that the whole takes where matrices of the next step are read ahead."""


LOCAL = LocalCosts()
"""Fitted to 324 convolutions on an H100."""


def local(tile: UnitTile, work: Work, limits: Limits, costs: LocalCosts = LOCAL) -> float:
    """Return the cost of tiles that read both operands through local memory: work-items of a compute unit wait for the
    loads of their stages, and their subgroups take turns at local memory."""
    rounds, stages = work.turns(tile, limits), -(-work.depth // tile.tile_depth)
    turns = math.ceil(rounds / max(1, costs.at_once // tile.group))
    loads = tile.loads_a + tile.loads_b + (costs.one_side if tile.sides == 1 else 0)
    matrix_rows = tile.fr * tile.unit_rows + tile.fc * tile.unit_columns
    read = tile.down * tile.across * tile.tile_depth8 * matrix_rows
    waits = ((stages + costs.begin) * (loads + costs.stage) + costs.finish * tile.sums) * turns
    return (waits + (stages + 1) * rounds * read / costs.read) * (costs.ahead if tile.sides > 2 else 1.0)


@dataclass(frozen=True)
class DirectCosts:
    """The parts of a device's time, in products of two matrices by a subgroup."""

    begin: float
    """Stages that pass before the first sum."""
    finish: float
    """A matrix that is written."""
    stage: float
    """A stage, beside its loads and products."""
    load: float
    """A matrix that is loaded."""
    registers: float
    """Registers of a work-item, beside its sums and what it loads."""
    working: float
    """Work-items that keep a compute unit busy."""


PRODUCTS = {"opencl": DirectCosts(2.0, 70, 62, 4.4, 58, 427), "vulkan": DirectCosts(4.8, 3, 25, 0.7, 24, 230)}
CONVOLUTIONS = {
    "opencl": DirectCosts(0.61, 12.4, 24, 0.23, 37, 192), "vulkan": DirectCosts(2.1, 58.8, 33.7, 0.19, 101, 295)
}  # fmt: skip
"""Fitted to 10 products (Vulkan's to 9 that end in registers) and 11 convolutions on an H100."""
STRAIGHT, ADDING_UP = DirectCosts(0.75, 17.7, 13.5, 4.2, 66, 208), 3000
"""Fitted to 8 products of 197 rows; and what adding up parts of the depth costs."""
_DEALT_LOAD, _DEALT_LAST, _DEALT_NEAR = 0.7, 0.8, 1.12
"""The cost of a matrix that a work-group loads, in products; the share that one work-group alone takes of two at once;
and that which all takes where loads are one step ahead. Fitted to 4 products of 6304 rows."""
_DEALT_COLUMNS, _FULL = 128, 0.9
"""Columns of a tile, and the share of them that should be there."""


def pays_direct(work: Work, limits: Limits) -> bool:
    """Return whether there are results enough; fewer leave units idle, and others share out the depth."""
    return work.per_unit(limits) >= _RESULTS


def pays_straight(work: Work, limits: Limits) -> bool:
    """Return whether there are too few results for other tiles, but rows enough for these."""
    return work.rows >= _ROWS and not pays_direct(work, limits)


def pays_dealt(work: Work, limits: Limits) -> bool:
    """Return whether there are results enough, and columns that fill tiles."""
    is_full = work.columns >= _FULL * _DEALT_COLUMNS * -(-work.columns // _DEALT_COLUMNS)
    return is_full and work.per_unit(limits) >= _DEALT_RESULTS


def direct(tile: UnitTile, work: Work, limits: Limits, costs: DirectCosts) -> float:
    """Return the cost of tiles that read the right operand from memory as work-items have it."""
    wanted = 8 * tile.sums + 8 * tile.fc + 4 * tile.fr + 4 * tile.loads_a + costs.registers
    products, loaded = tile.down * tile.across * tile.sums, tile.down * tile.fr + tile.across * tile.fc
    stage = tile.steps * (products + costs.load * loaded) + costs.stage
    whole = (-(-work.depth // tile.tile_depth) + costs.begin) * stage + costs.finish * products
    return _times(tile, work, limits, costs, wanted) * whole


def straight(tile: UnitTile, work: Work, limits: Limits) -> float:
    """Return the cost of tiles that read both operands from memory: a step by a subgroup costs more than its
    products."""
    costs = STRAIGHT
    wanted = 8 * tile.sums + 4 * (tile.twice_rows + tile.twice_columns) * tile.chunks + costs.registers
    subgroups, own = tile.down * tile.across * tile.parts, tile.sums + costs.load * (tile.fr + tile.fc)
    stage = subgroups * (tile.steps * own + costs.stage)
    finish = costs.finish * tile.down * tile.across * tile.sums * (1 + tile.parts)
    whole = (work.depth / tile.tile_depth + costs.begin) * stage + finish
    return _times(tile, work, limits, costs, wanted) * whole * (1 + max(0, wanted - _MOST_REGISTERS) / 900)


def dealt(tile: UnitTile, work: Work, limits: Limits) -> float:
    """Return the cost of tiles whose operands both lie in memory as work-items have them; a unit computes two
    work-groups at once."""
    loads = tile.down * tile.fr + tile.across * tile.fc
    twice, last = divmod(work.turns(tile, limits), 2)
    own = tile.down * tile.across * tile.sums + _DEALT_LOAD * loads
    return (twice + _DEALT_LAST * last) * own * (_DEALT_NEAR if tile.steps_ahead == 1 else 1.0)


def _times(tile: UnitTile, work: Work, limits: Limits, costs: DirectCosts, wanted: float) -> float:
    """Return how often a compute unit takes a work-group's time: it holds as many at once as it has registers for, and
    the last ones may be too few to keep it busy. `wanted`: registers of a work-item."""
    at_once = max(1, _REGISTERS // (8 * math.ceil(min(_MOST_REGISTERS, wanted) / 8) * tile.group))
    full, rest = divmod(work.turns(tile, limits), at_once)

    def busy(groups: int) -> float:
        return min(1.0, groups * tile.group / costs.working)

    return full * at_once / busy(at_once) + (rest / busy(rest) if rest else 0)
