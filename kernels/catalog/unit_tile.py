"""The tile of a work-group whose subgroups multiply matrices at once, on units that the device has for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernels.catalog.tile_text import numbers
from kernels.catalog.work_group import group_conflict
from kernels.errors import OptionError
from kernels.options import WARPGROUP, Backend, Limits, Options
from kernels.source.kernel import LocalArray
from kernels.source.tile import Tile, derived

MEANING = "subgroups down x across x matrices down x across x steps x parts of the depth x sides"
EXAMPLE = "2x2x4x4x2x1x2"
_WAYS = {"vulkan": "Vulkan (VK_KHR_cooperative_matrix)", "opencl": "OpenCL (NVIDIA's instructions, from 8.0 on)"}
_UNITS = 64
"""Compute units where the device does not tell."""


@dataclass(frozen=True)
class Costs:
    """What a device's time is made of, in loads that a work-item waits for."""

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
    """What the whole takes where matrices of the next step are read ahead, of what it takes otherwise."""


CONVOLUTIONS = Costs()
"""Fitted to 324 measurements on an H100 (docs/decisions/0109)."""
_DIRECT, _STRAIGHT, _DEALT = 4, 5, 6
_CHUNK = 2
FEW_STAGES = 24
"""Fewer stay a loop: a driver writes eight stages out, and reading so many instructions takes longer than they save
(measured with 12 and 48; docs/decisions/0158)."""
_KNOWN, _KNOWN_WIDTH, _INSTRUCTION = (16, 16, 16), 32, (16, 8, 16)
"""Of matrices that `unit_fragments` is made for; and a shape that tells that a driver of Vulkan has them."""
_KNOWN_VECTORS = 64
"""Of a matrix of sums that a subgroup looks at."""
_PAD = 1
"""Vectors of eight halves (16 bytes) more a row, against conflicts of banks."""
_AT_ONCE = 4
"""Vectors that a work-item reads before it stores the first of them."""


@dataclass(frozen=True)
class UnitTile(Tile):
    """`down` x `across` subgroups of `width` work-items, each `fr` x `fc` matrices; `parts` such sets of subgroups
    share out the depth, each of them `steps` matrices deep a stage; `sides` of local memory: 2, of which one is read
    while the other is filled, or 1; 3 stands for two, with the matrices of the next step read ahead; 4 for two of the
    left operand, while the right one is read from memory; 5 for none: both are read so; 6 for none, where the left one
    lies in memory as work-items have it (`DEALT` in kernels/parts/dealt_place.c), `steps` of which one is multiplied.

    `turned`: the right operand lies by columns. A matrix is `unit_rows` x `unit_columns`, a sum of products
    `unit_depth` deep: a shape that the device multiplies.
    """

    down: int
    across: int
    fr: int
    fc: int
    steps: int
    parts: int
    sides: int
    turned: int
    unit_rows: int
    unit_columns: int
    unit_depth: int
    width: int

    @property
    def words(self) -> str:
        """As `--product 'matrix_units 2x2x4x4x2x1x2'` takes it."""
        return "x".join(map(str, (self.down, self.across, self.fr, self.fc, self.steps, self.parts, self.sides)))

    @property
    def direct(self) -> bool:
        """Whether the right operand is read from memory as work-items have it."""
        return self.sides >= _DIRECT

    @property
    def straight(self) -> bool:
        """Whether the left one is, too."""
        return self.sides == _STRAIGHT

    @property
    def dealt(self) -> bool:
        """Whether the left one lies there as they have it."""
        return self.sides == _DEALT

    @property
    def local_bytes(self) -> int:
        """Of both operands, and later of the sums."""
        return 16 * self.local

    @derived
    def group(self) -> int:
        """Work-items of a work-group."""
        return self.down * self.across * self.parts * self.width

    @derived
    def sums(self) -> int:
        return self.fr * self.fc

    @derived
    def tile_rows(self) -> int:
        return self.down * self.fr * self.unit_rows

    @derived
    def tile_columns8(self) -> int:
        return self.across * self.fc * self.unit_columns // 8

    @derived
    def tile_depth(self) -> int:
        return self.parts * self.steps * self.unit_depth

    @derived
    def tile_depth8(self) -> int:
        return self.tile_depth // 8

    @derived
    def pitch_a(self) -> int:
        return self.tile_depth8 + _PAD

    @derived
    def pitch_b(self) -> int:
        return self.row_b + _PAD

    @derived
    def row_b(self) -> int:
        """Vectors of a row of the right operand, or of a column where it lies by columns."""
        return self.tile_depth8 if self.turned else self.tile_columns8

    @derived
    def right_columns(self) -> int:
        """From one matrix of the right operand to the next one across."""
        return self.unit_columns * self.pitch_b if self.turned else self.unit_columns // 8

    @derived
    def right_depth(self) -> int:
        return self.unit_depth // 8 if self.turned else self.unit_depth * self.pitch_b

    @derived
    def spread_a(self) -> int:
        """Lines that eight neighbours put into local memory at once, chosen to meet no banks of each other."""
        return _spread(self.tile_depth8, self.tile_rows)

    @derived
    def spread_b(self) -> int:
        return _spread(self.row_b, self.vectors_b // self.row_b)

    @derived
    def vectors_a(self) -> int:
        """Of a stage of the left operand."""
        return self.tile_rows * self.tile_depth8

    @derived
    def vectors_b(self) -> int:
        return self.tile_depth * self.tile_columns8

    @derived
    def loads_a(self) -> int:
        return -(-self.vectors_a // self.group)

    @derived
    def loads_b(self) -> int:
        return -(-self.vectors_b // self.group)

    @derived
    def even_a(self) -> int:
        """Whether every work-item loads as many."""
        return int(self.vectors_a % self.group == 0)

    @derived
    def even_b(self) -> int:
        return int(self.vectors_b % self.group == 0)

    @derived
    def start_b(self) -> int:
        """Where the right operand is in a side of local memory."""
        return self.tile_rows * self.pitch_a

    @derived
    def side(self) -> int:
        return self.start_b + (0 if self.direct else self.vectors_b // self.row_b * self.pitch_b)

    @derived
    def chunks(self) -> int:
        """Of two steps, in a stage; of two the next one is read while one is multiplied."""
        return max(1, self.steps // _CHUNK)

    @derived
    def look(self) -> int:
        return self.chunks - 1

    @derived
    def steps_ahead(self) -> int:
        """With six sides, whose steps are two or more."""
        return max(1, self.steps - 1)

    @derived
    def twice_rows(self) -> int:
        return 2 * self.fr

    @derived
    def twice_columns(self) -> int:
        return 2 * self.fc

    @derived
    def strip_columns4(self) -> int:
        return self.fc * self.unit_columns // 4

    @derived
    def strip_vectors(self) -> int:
        """Of a row of a subgroup's matrices, in singles."""
        return self.unit_rows * self.strip_columns4

    @derived
    def even_steps(self) -> int:
        """Steps after which the matrices of the next step are in the same places again."""
        return self.steps * (1 + self.steps % 2)

    @derived
    def at_once(self) -> int:
        """Vectors of a strip that a work-item reads before it stores the first of them."""
        return min(_AT_ONCE, -(-self.strip_vectors // (self.parts * self.width)))

    @derived
    def statistics(self) -> int:
        """Two numbers of each row: of each part, and of all."""
        return 2 * (self.parts + 1) * self.tile_rows

    @derived
    def pitch_strip(self) -> int:
        return self.strip_columns4 + _PAD

    @derived
    def strip(self) -> int:
        return self.unit_rows * self.pitch_strip

    @derived
    def part_strips(self) -> int:
        """Of the strips of a part."""
        return self.down * self.across * self.strip

    @derived
    def local(self) -> int:
        """The sides; afterwards a strip of sums a subgroup."""
        sides = 0 if self.sides > _DIRECT else min(self.sides, 2) * self.side
        return max(sides, self.down * self.across * (_KNOWN_VECTORS if self.dealt else self.parts * self.strip))


LOCAL = LocalArray("tile", "LOCAL", storage="raw8")

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
TILES_IN_VULKAN = (*TILES, "1x4x3x2x4x1x4", "2x2x4x4x2x1x6", "2x2x3x4x3x1x6", "1x4x3x4x3x1x6")
"""More, of sums that stay in registers; the first was not measured through OpenCL, the others are Vulkan's alone."""


def why_no_units(options: Options, limits: Limits) -> str | None:
    """Why no tile fits; None where the device has units and the options can use them."""
    if options.backend == "cpu":
        return "matrix units are a GPU's"
    if not options.half:
        return f"matrix units multiply halves; the precision is {options.precision}"
    if options.layout == "image":
        return "matrix units read buffers, not images"
    if not limits.matrix_units or not limits.subgroup_size:
        return f"the device multiplies no matrices of halves at once through {_WAYS[options.backend]}"
    return None


def unit_tile(words: str, limits: Limits, *, turned: bool) -> UnitTile:
    """The tile in words. Raises OptionError."""
    fields = (*numbers(words, MEANING, EXAMPLE), int(turned), *_unit(limits), limits.subgroup_size)
    tile = UnitTile(*fields)
    if tile.sides > _DEALT or (tile.sides == _DIRECT and (tile.parts > 1 or tile.steps % 2)):
        raise OptionError(
            f"tile {words!r}: there are up to 6 sides, and 4 ask for one part and an even number of steps"
        )
    if tile.dealt and (tile.parts > 1 or tile.steps < _CHUNK):
        raise OptionError(f"tile {words!r}: 6 sides ask for one part, and 2 steps or more")
    if tile.straight and tile.steps not in (_CHUNK, 2 * _CHUNK):
        raise OptionError(f"tile {words!r}: 5 sides ask for 2 or 4 steps")
    return tile


def unit_tiles(limits: Limits, backend: Backend, *, turned: bool, depth: int = 0) -> list[UnitTile]:
    """Those that fit the device, large ones first. `turned`: the right operand is stored; `depth`: see `conflict`."""
    tiles = [unit_tile(words, limits, turned=turned) for words in (TILES if backend == "opencl" else TILES_IN_VULKAN)]
    return [tile for tile in tiles if conflict(tile, limits, backend, depth=depth) is None]


def conflict(tile: UnitTile, limits: Limits, backend: Backend, *, depth: int = 0) -> str | None:
    """Why a tile does not fit the device; None where it does. `depth`: of rows that lie side by side, else 0."""
    if tile.dealt and backend != "vulkan":
        return "with six sides sums stay where Vulkan's matrices have them"
    if tile.sides > _DIRECT and (not depth or depth % tile.tile_depth):
        return f"with five and six sides rows lie side by side, and their depth is a multiple of {tile.tile_depth}"
    if tile.direct and not tile.turned:
        return "with four and more sides the right operand is stored, and it is computed"
    if tile.direct and not deals_out_as_known(limits, backend):
        return "with four and more sides matrices are NVIDIA's of 16 x 16 x 16"
    return group_conflict(limits, group=tile.group, local_bytes=tile.local_bytes)


def cost(tile: UnitTile, limits: Limits, costs: Costs, *, rows: int, columns: int, depth: int, matrices: int) -> float:
    """About the time of matrix products on a device, for comparing tiles (docs/decisions/0109).

    Work-items of a compute unit wait for the loads of their stages; their subgroups take turns at local memory.
    """
    groups = -(-rows // tile.tile_rows) * -(-columns // (8 * tile.tile_columns8)) * matrices
    rounds, stages = math.ceil(groups / (limits.compute_units or _UNITS)), -(-depth // tile.tile_depth)
    turns = math.ceil(rounds / max(1, costs.at_once // tile.group))
    loads = tile.loads_a + tile.loads_b + (costs.one_side if tile.sides == 1 else 0)
    matrix_rows = tile.fr * tile.unit_rows + tile.fc * tile.unit_columns
    read = tile.down * tile.across * tile.tile_depth8 * matrix_rows
    waits = ((stages + costs.begin) * (loads + costs.stage) + costs.finish * tile.sums) * turns
    return (waits + (stages + 1) * rounds * read / costs.read) * (costs.ahead if tile.sides > 2 else 1.0)


def deals_out_as_known(limits: Limits, backend: Backend) -> bool:
    """Whether work-items have of a matrix what `unit_fragments.fragments` says: in OpenCL it is part of NVIDIA's
    instructions; in Vulkan kernels look themselves."""
    is_known = _KNOWN in limits.matrix_units and _unit(limits) == _KNOWN and limits.subgroup_size == _KNOWN_WIDTH
    return is_known and (backend == "opencl" or _INSTRUCTION in limits.matrix_units)


def _spread(vectors: int, lines: int) -> int:
    """How many of `lines` lines, of so many vectors and one of padding, eight neighbours put at once."""
    return 8 // vectors if vectors < 8 and 8 % vectors == 0 and lines % 8 == 0 else 1


def _unit(limits: Limits) -> tuple[int, int, int]:
    """Of the shapes that the device multiplies the one that is nearest to 16 x 16 x 16."""
    units = [unit for unit in limits.matrix_units if unit != WARPGROUP]
    return min(units, key=lambda unit: abs(math.prod(unit) - 16**3))
