"""The cost of a product through local memory on a GPU with memory of its own, for comparing tiles: no time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from kernels.options import Limits

UNITS = 64
"""Compute units where the device does not tell."""
_REGISTERS, _MOST_REGISTERS, _ITEMS, _LOCAL_BYTES = 65536, 255, 2048, 228 << 10
"""Registers of a compute unit and of a work-item; work-items and local memory of a compute unit."""
_STEP = 128
"""Work-items that a compute unit's four schedulers take at once: fewer take as long."""
_SPILLED = 0.02
"""The share of the whole that each register takes which a work-item lacks."""


class LocalTile(Protocol):
    """The results that a work-group computes together: `rows` x `columns`."""

    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def rv(self) -> float:
        """Vectors of four rows of a work-item."""
        ...

    @property
    def cv(self) -> int:
        """Vectors of four columns of a work-item."""
        ...

    @property
    def depth(self) -> int:
        """Vectors of four numbers of the depth of a stage."""
        ...

    @property
    def split(self) -> int:
        """Parts of a work-group that share out the depth."""
        ...

    @property
    def work_group(self) -> int: ...
    @property
    def fetched(self) -> int:
        """Vectors of a stage that a work-item fetches."""
        ...

    @property
    def ahead(self) -> int: ...
    @property
    def local_bytes(self) -> int: ...


@dataclass(frozen=True)
class Costs:
    """The costs of a product on a desktop GPU, in multiplications of a busy compute unit."""

    working: float
    """Work-items that keep a compute unit busy: fewer leave a part of it idle."""
    read: float
    """Reading a vector, by those that it is multiplied with."""
    stage: float
    """A stage, by its depth."""
    branches: float
    """The share of the other loop's time that the loop with branches takes."""
    registers: float
    """Registers of a work-item, beside its sums, its operands and what it fetches."""
    fetched: tuple[float, float]
    """Registers of a vector that is fetched: in the form of the loop that suits the API, and in the other."""
    divided: float
    """A depth that is divided: one more kernel."""
    moved: float
    """A number that a part of the depth writes, and that is read again."""
    shared: float = 0.0
    """The share of the whole that each further part of a work-group takes which shares out the depth."""


OF_PRODUCTS = {
    "opencl": Costs(301, 6.7, 1.9, 1.0, 11, (10.2, 18.6), 10.5e6, 2.05),
    "vulkan": Costs(292, 5.0, 1.5, 1.08, 14, (9.5, 12.6), 5.6e6, 3.9),
}
"""Costs by API, fitted to 20 products, every tile, one to eight parts of the depth, on an H100."""
OF_CONVOLUTIONS = {
    "opencl": Costs(460, 2.5, 5.5, 1.0, 10.5, (19, 19), 12e6, 0.5, 0.085),
    "vulkan": Costs(490, 1.0, 1.26, 1.0, 65, (4, 4), 3.5e6, 0.27, 0.118),
}
"""Costs by API, fitted to 20 layers, every tile, one to eight parts of the depth, on an H100."""


def desktop_cost(
    tile: LocalTile, costs: Costs, *, tiles: int, depth: int, parts: int, results: int, limits: Limits, api: str
) -> float:
    """Work-groups of a compute unit, as many at once as it has registers for; the last ones may be too few to keep it
    busy. `parts` of the depth are each written, `results` numbers, and added up after."""
    registers = _registers(tile, costs, suits=bool(tile.ahead) == (api == "vulkan"))
    at_once = _at_once(tile, registers)
    full, rest = divmod(math.ceil(tiles * parts / (limits.compute_units or UNITS)), at_once)
    turns = full * _turn(tile, at_once, costs) + _turn(tile, rest, costs)
    loads = 1 + costs.read / tile.rv + costs.read / tile.cv + costs.stage / tile.depth
    loads *= 1.0 if tile.ahead else costs.branches
    loads *= 1 + costs.shared * (tile.split - 1)
    loads *= 1 + _SPILLED * max(0.0, registers - _MOST_REGISTERS)
    added_up = costs.divided + costs.moved * parts * results if parts > 1 else 0.0
    return turns * tile.rows * tile.columns * depth / parts * loads + added_up


def _turn(tile: LocalTile, groups: int, costs: Costs) -> float:
    """Return the turns of so many work-groups at once, in those of a busy compute unit."""
    items = _STEP * math.ceil(groups * tile.work_group / _STEP)
    return max(float(items), costs.working) / tile.work_group if groups else 0.0


def _registers(tile: LocalTile, costs: Costs, *, suits: bool) -> float:
    """Return the registers that a work-item wants; `suits`: the form of the loop suits the API."""
    fetched = costs.fetched[0 if suits else 1] * tile.fetched
    return 16 * tile.rv * tile.cv + 4 * (tile.rv + tile.cv) + fetched + costs.registers


def _at_once(tile: LocalTile, registers: float) -> int:
    """Work-groups of a compute unit."""
    held = 8 * math.ceil(min(registers, _MOST_REGISTERS) / 8)
    by_local = _LOCAL_BYTES // (tile.local_bytes + 1024)
    return max(1, min(_ITEMS // tile.work_group, _REGISTERS // (held * tile.work_group), by_local))
