"""A register tile a work-item, and a large tile a work-group through local memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.family import Call, Constants
from kernels.catalog.product.depth_parts import depth_parts
from kernels.catalog.product.kernel_parts import BATCHED, BOUNDS, operands
from kernels.catalog.product.sizes import Product
from kernels.catalog.tile_text import numbers
from kernels.catalog.work_group import group_conflict
from kernels.errors import OptionError
from kernels.options import Limits, Options
from kernels.source.kernel import Kernel, LocalArray
from kernels.source.tile import Tile, derived

_MEANING, _EXAMPLE = "gx x gy x rows4 x columns4 x depth4", "16x16x2x2x4"
_BUSY = 2
"""Work-groups a compute unit that keep it busy."""
_USUAL = 128 * 128
"""Results of a tile."""
_UNLIKE = 1.2
"""What the other form of the loop costs: Vulkan's compilers like it without branches (docs/decisions/0037)."""
_UNITS, _DESKTOP_UNITS = 8, 64
"""Compute units where the device does not tell: of a phone, and of a device with memory of its own."""


@dataclass(frozen=True)
class _Costs:
    """What a product takes on a desktop GPU, in numbers of a tile that is read and multiplied once."""

    working: float
    """Work-items that keep a compute unit busy: fewer leave a part of it idle."""
    read: float
    """Reading a vector, by those that it is multiplied with."""
    stage: float
    """A stage, by its depth."""
    first: float
    """Until the first tile multiplies, in tiles."""
    divided: float
    """What several work-groups a tile make of its time, since more of them wait for memory at once."""
    branches: float
    """What the loop with branches takes of the other's time."""
    deep: float
    """What a deep stage takes that is fetched ahead: its numbers stay in registers for longer."""
    registers: float
    """Of a work-item, beside its sums and what it fetches."""
    three: float
    """What tiles of three vectors of columns take of the cost: every work-item fetches one square."""


_COSTS = {
    "opencl": _Costs(165, 0.81, 0.86, 0.05, 0.75, 0.98, 1.36, 37, 0.94),
    "vulkan": _Costs(229, 0.45, 1.47, 0.04, 0.67, 1.3, 2.15, 44, 1.0),
}
"""By API: fitted to 18 products each on an H100 (docs/decisions/0144)."""
_UNMEASURED = 2.0
"""Keeps tiles of three vectors of columns from products on which they were not timed, or were slow."""
_THREE_AT_ONCE = 3
"""Work-groups of a compute unit, of such a tile (docs/decisions/0163)."""
_REGISTERS, _MOST_REGISTERS, _ITEMS, _LOCAL_BYTES = 65536, 255, 2048, 228 << 10
"""Of a compute unit, of a work-item; work-items and local memory of a compute unit."""


@dataclass(frozen=True)
class ProductTile(Tile):
    """`gx` x `gy` work-items (columns x rows), each `rv` vectors of four rows x `cv` vectors of four columns;
    `depth` vectors of four deep a stage; `ahead` 1: the first stage is fetched ahead of the loop, which then has no
    branches. A fetch is a square of 4 x 4 numbers; those of the left operand come first."""

    gx: int
    gy: int
    rv: int
    cv: int
    depth: int
    ahead: int = 0

    @property
    def rows(self) -> int:
        return 4 * self.tile_rows4

    @property
    def columns(self) -> int:
        return 4 * self.tile_columns4

    @property
    def local_bytes(self) -> int:
        """Of both operands in single precision."""
        return 16 * (self.local_a + self.local_b)

    @property
    def words(self) -> str:
        """As `--product 'tiled 16x16x2x2x4'` takes it."""
        sizes = (self.gx, self.gy, self.rv, self.cv, self.depth)
        return "x".join(map(str, (*sizes, *([1] if self.ahead else []))))

    @derived
    def group(self) -> int:
        """Work-items of a work-group."""
        return self.gx * self.gy

    @derived
    def tile_rows4(self) -> int:
        return self.gy * self.rv

    @derived
    def tile_columns4(self) -> int:
        return self.gx * self.cv

    @derived
    def tile_depth(self) -> int:
        return 4 * self.depth

    @derived
    def pitch(self) -> int:
        """Of the left operand: a vector more a row, against conflicts of banks."""
        return self.tile_rows4 + 1

    @derived
    def sums(self) -> int:
        return 4 * self.rv * self.cv

    @derived
    def fetches_a(self) -> int:
        return self.tile_rows4 * self.depth

    @derived
    def fetches_all(self) -> int:
        return (self.tile_rows4 + self.tile_columns4) * self.depth

    @derived
    def fetches(self) -> int:
        """Of a work-item."""
        return -(-self.fetches_all // self.group)

    @derived
    def fetched(self) -> int:
        """Vectors of a work-item."""
        return 4 * self.fetches

    @derived
    def half_a(self) -> int:
        """Vectors of a stage of the left operand."""
        return 4 * self.depth * self.pitch

    @derived
    def half_b(self) -> int:
        return 4 * self.depth * self.tile_columns4

    @derived
    def local_a(self) -> int:
        return 2 * self.half_a

    @derived
    def local_b(self) -> int:
        return 2 * self.half_b


TILES = tuple(
    ProductTile(*sizes)
    for sizes in (
        (16, 16, 4, 2, 2), (16, 16, 2, 4, 2), (16, 8, 4, 2, 2), (8, 16, 2, 4, 2), (8, 8, 4, 2, 2), (8, 8, 2, 4, 2),
        (16, 16, 2, 2, 2), (16, 16, 2, 2, 4), (16, 8, 2, 2, 2), (16, 8, 2, 2, 4), (8, 16, 2, 2, 2), (8, 8, 2, 2, 2),
        (8, 8, 2, 2, 4), (16, 8, 1, 2, 4), (16, 16, 1, 1, 4), (8, 8, 1, 2, 4), (8, 8, 1, 1, 4), (8, 4, 1, 1, 4),
        (16, 16, 4, 2, 2, 1), (16, 16, 2, 4, 2, 1), (16, 8, 4, 2, 2, 1), (16, 16, 2, 2, 2, 1), (16, 16, 2, 2, 4, 1),
        (16, 8, 2, 2, 2, 1), (16, 8, 2, 2, 4, 1), (8, 8, 2, 2, 2, 1), (16, 8, 2, 3, 2), (16, 8, 2, 3, 2, 1),
    )
)  # fmt: skip
"""gx is a multiple of 8 and gy of 4, as the kernel deals work-items out; depth4 is even."""

KERNEL = Kernel(
    "matmul_tiled",
    Path(__file__).with_name("kernel.c"),
    operands(4),
    ("rows", *BATCHED),
    BOUNDS,
    ProductTile,
    (LocalArray("tile_a", "LOCAL_A", storage="computed"), LocalArray("tile_b", "LOCAL_B", storage="computed")),
    computes_in_half=True,
)


class Tiled:
    """For desktop GPUs: each number that is loaded from local memory is used four to sixteen times."""

    name = "tiled"
    summary = f"a register tile a work-item, a tile a group through local memory; tile: {_MEANING}, e.g. {_EXAMPLE}"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        """Why it does not fit; None where it does. Raises OptionError for a tile that is not known."""
        del options, product
        shape = _parse(tile) if tile else min(TILES, key=lambda one: (one.local_bytes, one.group))
        return group_conflict(limits.within(KERNEL.name), group=shape.group, local_bytes=shape.local_bytes)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        """Tiles worth trying, the default first."""
        fitting = [tile for tile in TILES if self.why_not(product, options, limits, tile.words) is None]
        wasted = {tile: _computed(tile, product) / (product.rows * product.columns * product.batch) for tile in fitting}
        least = min(wasted.values(), default=0)
        usable = [tile for tile in fitting if wasted[tile] <= max(4.0, least)]

        def order(tile: ProductTile) -> tuple[float, int]:  # of those that cost the same, what was best on an H100
            return float(f"{_cost(tile, product, options, limits):.6g}"), abs(tile.rows * tile.columns - _USUAL)

        return [tile.words for tile in sorted(usable, key=order)]

    def lower(
        self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = ""
    ) -> tuple[Call, ...]:
        """The dispatch; `tile` empty: the default. Raises OptionError."""
        del constants
        shape = _parse(tile or self.tiles(product, options, limits)[0])
        across, down = -(-4 * product.columns4 // shape.columns), -(-product.rows // shape.rows)
        rest = product.rows % shape.rows, 4 * product.columns4 % shape.columns, product.depth % shape.tile_depth
        whole = {"WHOLE": int(not any(rest))}
        parts, ints = _parts(shape, product, limits), {}
        if parts > 1:
            deep = product.depth // parts
            ints = {"depth": deep, "a_batch": deep // 4, "b_batch": deep * product.columns4}
        items = (across * shape.group, down, parts * product.batch)
        return (Call(KERNEL, items, shape, whole, ints, group=shape.group, parts=parts),)


def _parts(tile: ProductTile, product: Product, limits: Limits) -> int:
    return depth_parts(product, limits, rows=tile.rows, columns=tile.columns, depth=tile.tile_depth)


def _parse(words: str) -> ProductTile:
    is_ahead = words.count("x") == 5 and words.endswith("x1")
    gx, gy, rv, cv, depth = numbers(words[:-2] if is_ahead else words, _MEANING, _EXAMPLE)
    tile = ProductTile(gx, gy, rv, cv, depth, int(is_ahead))
    if tile.gx % 8 or tile.gy % 4 or tile.depth % 2:
        raise OptionError(f"tile {words!r}: gx is a multiple of 8, gy one of 4, depth4 one of 2, e.g. {_EXAMPLE}")
    return tile


def _computed(tile: ProductTile, product: Product) -> int:
    """Outputs computed, those beyond the edges too."""
    groups = -(-product.rows // tile.rows) * -(-product.columns // tile.columns) * product.batch
    return groups * tile.rows * tile.columns


def _cost(tile: ProductTile, product: Product, options: Options, limits: Limits) -> float:
    """For comparing tiles: what is computed, times what idles, the loads from local memory a multiplication, and what
    branches cost."""
    if not limits.unified_memory:
        return _desktop_cost(tile, product, limits, _COSTS[options.backend])
    computed = _computed(tile, product)
    rounds = computed / (tile.rows * tile.columns * (limits.compute_units or _UNITS))
    idle = math.ceil(rounds) / rounds if rounds > _BUSY else max(1.0, 1 / rounds)
    unlike = _UNLIKE if (options.backend == "vulkan") != bool(tile.ahead) else 1.0
    untimed = _UNMEASURED if tile.cv == 3 else 1.0
    return untimed * unlike * computed * idle * (1 + 0.5 / tile.rv + 0.5 / tile.cv)


def _desktop_cost(tile: ProductTile, product: Product, limits: Limits, costs: _Costs) -> float:
    """Work-groups of a compute unit, as many at once as it has registers for; the last ones may be too few to keep it
    busy."""
    parts = _parts(tile, product, limits)
    groups = _computed(tile, product) // (tile.rows * tile.columns) * parts
    turns, at_once = math.ceil(groups / (limits.compute_units or _DESKTOP_UNITS)), _at_once(tile, costs)
    full, rest = divmod(turns, at_once)
    times = full * at_once / _busy(tile, at_once, costs) + (rest / _busy(tile, rest, costs) if rest else 0)
    loads = 1 + costs.read / tile.rv + costs.read / tile.cv + costs.stage / tile.depth
    loads *= (costs.divided if parts > 1 else 1.0) * (1.0 if tile.ahead else costs.branches)
    loads *= costs.deep if tile.ahead and tile.depth > 2 else 1.0
    if tile.cv == 3:
        is_measured = parts == 1 and bool(tile.ahead) == (costs is _COSTS["vulkan"])
        loads *= costs.three if is_measured else _UNMEASURED
    return (times + costs.first) * tile.rows * tile.columns / parts * loads


def _at_once(tile: ProductTile, costs: _Costs) -> int:
    """Work-groups of a compute unit."""
    if tile.cv == 3:
        return _THREE_AT_ONCE
    wanted = 16 * tile.rv * tile.cv + 4 * tile.fetched + 4 * (tile.rv + tile.cv) + costs.registers
    registers = 8 * math.ceil(min(wanted, _MOST_REGISTERS) / 8)
    by_local = _LOCAL_BYTES // (tile.local_bytes + 1024)
    return max(1, min(_ITEMS // tile.group, _REGISTERS // (registers * tile.group), by_local))


def _busy(tile: ProductTile, groups: int, costs: _Costs) -> float:
    return min(1.0, groups * tile.group / costs.working)
