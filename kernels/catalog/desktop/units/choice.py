"""The tiles that a device takes."""

from __future__ import annotations

import math

from kernels.catalog.desktop.units.tile import UnitTile, parse
from kernels.catalog.work_group import group_conflict
from kernels.options import WARPGROUP, Backend, Limits, Options

_WAYS = {"vulkan": "Vulkan (VK_KHR_cooperative_matrix)", "opencl": "OpenCL (NVIDIA's instructions, from 8.0 on)"}
_KNOWN, _KNOWN_WIDTH, _INSTRUCTION = (16, 16, 16), 32, (16, 8, 16)
"""Matrices that `fragments` is made for; and a shape that tells that a driver of Vulkan has them."""
TILES = (
    "2x2x4x4x2x1x3", "2x4x4x4x2x1x1", "4x2x4x4x2x1x1", "2x2x4x4x2x1x2", "2x2x4x4x4x1x1", "2x2x2x4x2x1x2",
    "2x2x4x2x2x1x2", "2x2x2x2x4x1x2", "2x2x2x2x2x1x2", "2x2x2x1x4x1x2", "2x2x1x2x4x1x2", "1x2x2x2x4x1x2",
    "1x4x2x1x4x1x2", "2x2x1x1x4x1x2", "1x2x1x1x4x1x2", "1x2x2x2x2x2x2", "1x2x2x2x2x4x1", "1x1x2x2x2x4x2",
    "1x1x2x2x2x8x1", "1x2x2x1x2x4x2", "1x1x1x1x4x8x1", "1x1x1x1x2x8x2",
    "1x4x4x4x4x1x4", "1x4x3x4x4x1x4", "1x4x4x2x4x1x4", "1x4x3x3x4x1x4", "1x4x2x3x4x1x4",
    "1x4x2x2x4x1x4", "1x4x2x2x2x1x4", "1x2x2x2x4x1x4", "1x4x2x1x4x1x4", "1x2x1x2x4x1x4", "1x2x2x1x4x1x4",
    "2x2x2x2x4x2x5", "1x2x2x4x2x4x5", "1x2x3x3x2x4x5", "1x2x2x2x4x6x5", "1x2x2x2x4x4x5", "1x1x3x4x2x4x5",
    "1x1x2x4x2x4x5", "1x1x2x3x4x6x5", "1x1x2x4x4x4x5", "1x1x3x2x4x4x5", "1x1x2x2x4x4x5",
)  # fmt: skip
"""Large first."""
TILES_IN_VULKAN = (*TILES, "1x4x3x2x4x1x4", "2x2x4x4x2x1x6", "2x2x3x4x3x1x6", "2x2x3x6x2x1x6", "1x4x3x4x3x1x6")
"""More, of sums that stay in registers; the first was not measured through OpenCL, the others are Vulkan's alone."""


def why_no_units(options: Options, limits: Limits) -> str | None:
    """Return why no tile fits; None: the device has units and the options can use them."""
    if options.backend == "cpu":
        return "matrix units are a GPU's"
    if not options.half:
        return f"matrix units multiply halves; the precision is {options.precision}"
    if not limits.matrix_units or not limits.subgroup_size:
        return f"the device multiplies no matrices of halves at once through {_WAYS[options.backend]}"
    return None


def unit_tile(words: str, limits: Limits, *, turned: bool) -> UnitTile:
    """The tile in words. Raises OptionError."""
    return parse(words, turned=turned, unit=_unit(limits), width=limits.subgroup_size)


def unit_tiles(limits: Limits, backend: Backend, *, turned: bool, depth: int = 0) -> list[UnitTile]:
    """Return the tiles that fit the device, large ones first. `turned`: the right operand is stored; `depth`: see
    `conflict`."""
    tiles = [unit_tile(words, limits, turned=turned) for words in (TILES if backend == "opencl" else TILES_IN_VULKAN)]
    return [tile for tile in tiles if conflict(tile, limits, backend, depth=depth) is None]


def conflict(tile: UnitTile, limits: Limits, backend: Backend, *, depth: int = 0) -> str | None:
    """Return why a tile does not fit the device; None: it does. `depth`: of rows that lie side by side, else 0."""
    if tile.dealt and backend != "vulkan":
        return "with six sides sums stay where Vulkan's matrices have them"
    if (tile.straight or tile.dealt) and (not depth or depth % tile.tile_depth):
        return f"with five and six sides rows lie side by side, and their depth is a multiple of {tile.tile_depth}"
    if tile.direct and not tile.turned:
        return "with four and more sides the right operand is stored, and it is computed"
    if tile.direct and not deals_out_as_known(limits, backend):
        return "with four and more sides matrices are NVIDIA's of 16 x 16 x 16"
    return group_conflict(limits, group=tile.group, local_bytes=tile.local_bytes)


def deals_out_as_known(limits: Limits, backend: Backend) -> bool:
    """Return whether work-items have of a matrix what `fragments` says: in OpenCL it is part of NVIDIA's instructions;
    in Vulkan kernels look themselves."""
    is_known = _KNOWN in limits.matrix_units and _unit(limits) == _KNOWN and limits.subgroup_size == _KNOWN_WIDTH
    return is_known and (backend == "opencl" or _INSTRUCTION in limits.matrix_units)


def _unit(limits: Limits) -> tuple[int, int, int]:
    """Return the shape that the device multiplies which is nearest to 16 x 16 x 16."""
    units = [unit for unit in limits.matrix_units if unit != WARPGROUP]
    return min(units, key=lambda unit: abs(math.prod(unit) - 16**3))
