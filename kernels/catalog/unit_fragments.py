"""Stored right operands of products on matrix units, read from memory as a subgroup's work-items have them.

They need no local memory, no barrier and no instruction that deals them out (docs/decisions/0150).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernels.catalog.packing import padded
from kernels.catalog.unit_tile import UnitTile
from kernels.ir.graph import Array
from kernels.options import Backend, Limits

_RESULTS = 7500
"""Of a compute unit: from so many on such tiles take less than others."""
_DEALT_RESULTS = 25000
"""As many as were measured."""
_ROWS = 64
_UNITS, _REGISTERS = 64, 65536
"""Compute units where the device does not tell, and registers of one."""


@dataclass(frozen=True)
class Costs:
    """What a device's time is made of, in products of two matrices by a subgroup."""

    begin: float
    """Stages that pass before the first sum."""
    finish: float
    """A matrix that is written."""
    stage: float
    """A stage, beside its loads and products."""
    load: float
    """A matrix that is loaded."""
    registers: float
    """Of a work-item, beside its sums and what it loads."""
    working: float
    """Work-items that keep a compute unit busy."""


PRODUCTS = {"opencl": Costs(2.0, 70, 62, 4.4, 58, 427), "vulkan": Costs(4.8, 3, 25, 0.7, 24, 230)}
CONVOLUTIONS = {"opencl": Costs(0.61, 12.4, 24, 0.23, 37, 192), "vulkan": Costs(2.1, 58.8, 33.7, 0.19, 101, 295)}
"""Fitted to 10 products (Vulkan's to 9 that end in registers) and 11 convolutions on an H100."""
STRAIGHT, ADDING_UP = Costs(0.75, 17.7, 13.5, 4.2, 66, 208), 3000
"""Fitted to 8 products of 197 rows; and what adding up parts of the depth costs."""
DEALT_LOAD = 0.7
"""Of a matrix that a work-group loads, in products; fitted to 4 products."""


def fragments(weight: Array, tile: UnitTile, backend: Backend, *, paired: bool = False) -> Array:
    """(depth, columns) -> [columns / 16][steps, and one of zeros][32 work-items][8], zero-padded to whole stages.

    Work-item 4 i + j has of a matrix columns i and i + 8, and of each the rows 2 j, 2 j + 1, 2 j + 8 and 2 j + 9: what
    PTX says of `mma.m16n8k16`, twice. In Vulkan, with four and six sides, columns are in another order: of the sums a
    work-item has four that lie side by side. With six rows are, too, because of the left operand it has such four.
    `paired`: of two matrices of sums it has eight; columns are a multiple of 32.
    """
    full = padded(padded(weight, 1, 16), 0, tile.tile_depth)
    full = full if tile.straight or backend == "opencl" else _eights(full) if paired else _fours(full)
    full = _fours(full.T).T if tile.dealt else full
    full = np.concatenate([full, np.zeros((16, full.shape[1]), full.dtype)])
    steps, matrices = full.shape[0] // 16, full.shape[1] // 16
    places = full.reshape(steps, 2, 4, 2, matrices, 2, 8)  # step, half of it, j, pair, matrix, half of it, i
    return np.ascontiguousarray(places.transpose(4, 0, 6, 2, 5, 1, 3).reshape(matrices, steps, 32, 8))


def _fours(weight: Array) -> Array:
    """Of 16 columns the ones of a sum that work-item j of four has, 2 j, 2 j + 1, 2 j + 8 and 2 j + 9, are 4 j to
    4 j + 3 of the weight's."""
    fours = weight.reshape(weight.shape[0], -1, 4, 2, 2)  # matrix, j, half of the matrix, pair
    return fours.transpose(0, 1, 3, 2, 4).reshape(weight.shape)


def _eights(weight: Array) -> Array:
    """As `_fours`, of 32 columns: 8 j to 8 j + 3 in the first matrix, and the next four in the second."""
    eights = weight.reshape(weight.shape[0], -1, 4, 2, 4)  # pair of matrices, j, matrix
    return _fours(np.ascontiguousarray(eights.transpose(0, 1, 3, 2, 4)).reshape(weight.shape))


def straight(weight: Array) -> Array:
    """(depth, columns) -> the same with rows in another order: of 32 a work-item 4 i + j has of the two matrices of
    `fragments` the rows 8 j to 8 j + 7, as it has of the left operand's."""
    rows = weight.reshape(-1, 4, 2, 2, 2, weight.shape[1])  # j, matrix, half of it, pair
    return rows.transpose(0, 2, 3, 1, 4, 5).reshape(weight.shape)


def pays(limits: Limits, *, rows: int, columns: int, matrices: int, **_: int) -> bool:
    """Whether there are results enough for such tiles; fewer leave units idle, and others share out the depth."""
    return rows * columns * matrices >= _RESULTS * (limits.compute_units or _UNITS)


def pays_straight(limits: Limits, *, rows: int, columns: int, matrices: int, **_: int) -> bool:
    """Whether there are too few results for other tiles, but rows enough for these."""
    return rows >= _ROWS and not pays(limits, rows=rows, columns=columns, matrices=matrices)


def pays_dealt(limits: Limits, *, rows: int, columns: int, matrices: int, **_: int) -> bool:
    """Whether there are results enough for tiles whose left operand lies so, too."""
    return rows * columns * matrices >= _DEALT_RESULTS * (limits.compute_units or _UNITS)


def dealt_cost(tile: UnitTile, limits: Limits, *, rows: int, columns: int, matrices: int, **_: int) -> float:
    """As `cost`, of tiles whose operands both lie so: of each a unit has two work-groups at once."""
    groups = -(-rows // tile.tile_rows) * -(-columns // (8 * tile.tile_columns8)) * matrices
    turns = math.ceil(groups / (limits.compute_units or _UNITS))
    return turns * (tile.down * tile.across * tile.sums + DEALT_LOAD * (tile.down * tile.fr + tile.across * tile.fc))


def straight_cost(tile: UnitTile, limits: Limits, *, rows: int, columns: int, depth: int, matrices: int) -> float:
    """As `cost`, of tiles that read both operands so: a step by a subgroup costs something beside its products."""
    groups = -(-rows // tile.tile_rows) * -(-columns // (8 * tile.tile_columns8)) * matrices
    turns = math.ceil(groups / (limits.compute_units or _UNITS))
    wanted = 8 * tile.sums + 4 * (tile.twice_rows + tile.twice_columns) * tile.chunks + STRAIGHT.registers
    at_once = max(1, _REGISTERS // (8 * math.ceil(min(255, wanted) / 8) * tile.group))
    full, rest = divmod(turns, at_once)
    times = full * at_once / _busy(tile, at_once, STRAIGHT) + (rest / _busy(tile, rest, STRAIGHT) if rest else 0)
    subgroups, own = tile.down * tile.across * tile.parts, tile.sums + STRAIGHT.load * (tile.fr + tile.fc)
    stage = subgroups * (tile.steps * own + STRAIGHT.stage)
    finish = STRAIGHT.finish * tile.down * tile.across * tile.sums * (1 + tile.parts)
    return times * ((depth / tile.tile_depth + STRAIGHT.begin) * stage + finish) * (1 + max(0, wanted - 255) / 900)


def cost(tile: UnitTile, limits: Limits, costs: Costs, *, rows: int, columns: int, depth: int, matrices: int) -> float:
    """About the time of matrix products on a device, for comparing such tiles: a compute unit holds as many work-groups
    at once as it has registers for, and the last ones may be too few to keep it busy."""
    groups = -(-rows // tile.tile_rows) * -(-columns // (8 * tile.tile_columns8)) * matrices
    turns = math.ceil(groups / (limits.compute_units or _UNITS))
    wanted = 8 * tile.sums + 8 * tile.fc + 4 * tile.fr + 4 * tile.loads_a + costs.registers
    at_once = max(1, _REGISTERS // (8 * math.ceil(min(255, wanted) / 8) * tile.group))
    full, rest = divmod(turns, at_once)
    times = full * at_once / _busy(tile, at_once, costs) + (rest / _busy(tile, rest, costs) if rest else 0)
    products, loaded = tile.down * tile.across * tile.sums, tile.down * tile.fr + tile.across * tile.fc
    stage = tile.steps * (products + costs.load * loaded) + costs.stage
    return times * ((-(-depth // tile.tile_depth) + costs.begin) * stage + costs.finish * products)


def _busy(tile: UnitTile, groups: int, costs: Costs) -> float:
    return min(1.0, groups * tile.group / costs.working)
