"""The tile that a work-group computes together through local memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kernels.catalog.desktop.cost import OF_CONVOLUTIONS, UNITS, desktop_cost
from kernels.errors import OptionError
from kernels.options import Limits, Options
from kernels.source.tile import Tile, derived


@dataclass(frozen=True)
class GroupTile(Tile):
    """`tx` x `ty` work-items, each `tp` pixels x `tv` vectors of four channels; `depth` stacks of inputs a stage;
    `split` such parts in a work-group, which share out the sum; `ahead` 1: the first stage is fetched ahead of the
    loop, which then has no branches.

    The source lies in local memory in vectors of four pixels of a channel (`square`), so that fewer registers hold what
    is multiplied, or else in vectors of four channels of a pixel.
    """

    tx: int
    ty: int
    tp: int
    tv: int
    depth: int
    split: int = 1
    ahead: int = 0

    @property
    def work_group(self) -> int:
        """Work-items of a work-group."""
        return self.group * self.split

    @property
    def local_bytes(self) -> int:
        """Bytes of both operands in single precision."""
        return 16 * (self.local_src + self.local_weight)

    @property
    def rows(self) -> int:
        return self.tile_pixels

    @property
    def columns(self) -> int:
        return 4 * self.tile_vectors

    @property
    def rv(self) -> float:
        return self.tp / 4

    @property
    def cv(self) -> int:
        return self.tv

    @property
    def fetched(self) -> int:
        return self.loads_src + self.loads_weight

    group = derived(lambda tile: tile.tx * tile.ty)
    """Work-items of a part."""
    tile_pixels = derived(lambda tile: tile.tx * tile.tp)
    tile_vectors = derived(lambda tile: tile.ty * tile.tv)
    tile_depth = derived(lambda tile: 4 * tile.depth)
    square = derived(lambda tile: int(tile.tp % 4 == 0))
    pixel_vectors = derived(lambda tile: max(1, tile.tp // 4))
    sums = derived(lambda tile: tile.tp * tile.tv)
    loads_src = derived(lambda tile: tile.half_src // tile.group)
    loads_weight = derived(lambda tile: -(-tile.half_weight // tile.group))
    pixel_slots = derived(lambda tile: max(1, tile.tile_pixels // tile.group))
    stack_slots = derived(lambda tile: tile.loads_src // tile.pixel_slots)
    stack_step = derived(lambda tile: max(1, tile.group // tile.tile_pixels))
    half_src = derived(lambda tile: tile.tile_pixels * tile.depth)
    """Vectors of a stage of the source."""
    half_weight = derived(lambda tile: 4 * tile.tile_vectors * tile.depth)
    """Vectors of a stage of the weights."""
    local_src = derived(lambda tile: max(2 * tile.half_src * tile.split, (tile.split - 1) * tile.sums * tile.group))
    """Two stages of every part; afterwards the sums of all parts but one."""
    local_weight = derived(lambda tile: 2 * tile.half_weight * tile.split)

    @property
    def words(self) -> str:
        """The text that `parse_group_tile` reads."""
        sizes = (self.tx, self.ty, self.tp, self.tv, self.depth, self.split)
        return "x".join(map(str, (*sizes, *([1] if self.ahead else []))))


TILES = tuple(
    GroupTile(*sizes)
    for sizes in (
        (16, 16, 8, 2, 2), (32, 8, 8, 2, 2), (16, 8, 8, 2, 2), (32, 4, 8, 2, 2), (16, 8, 4, 2, 2), (32, 4, 4, 2, 2),
        (64, 2, 4, 2, 2), (64, 1, 4, 4, 2), (64, 1, 8, 1, 2), (16, 4, 4, 2, 2), (8, 8, 4, 1, 2), (8, 8, 2, 1, 4),
        (16, 4, 4, 2, 2, 4), (16, 4, 2, 1, 4), (8, 8, 4, 1, 2, 4), (8, 8, 2, 1, 4, 4), (16, 4, 2, 1, 4, 4),
        (8, 8, 1, 1, 8, 4), (16, 2, 1, 1, 8, 4), (8, 4, 1, 1, 8, 8),
    )
)  # fmt: skip
"""Large first. Every work-item of a part loads at least one vector of the source: tx * tp * depth >= tx * ty."""
_LOCAL_BYTES = 32 << 10
_MAX_WASTE = 4.0
_BUSY = 2
"""Work-groups a compute unit that keep it busy."""
_BUSY_ITEMS = 256
"""Work-items of such a group, where a layer has no more than one vector of outputs."""
_UNITS = 8
"""Compute units of a phone that does not tell."""
_FEWEST, _PARTS = 4, (1, 2, 4, 8)
"""Stages of a part of the depth, and numbers of parts."""


@dataclass(frozen=True)
class StackProduct:
    """Sizes of a product of stacks of pixels with weights."""

    pixels: int
    stacks: int
    """Stacks of outputs."""
    depth: int
    """Pairs of a tap and a stack of inputs."""
    matrices: int
    """Number of such products side by side."""
    divides: bool = False
    """True if several work-groups may share out the depth."""


def group_tile_words(options: Options, limits: Limits, sizes: StackProduct) -> list[str]:
    """Tiles worth trying, the default first; none that would compute more than four times what is wanted."""
    default = choose_group_tile(options, limits, sizes)

    wanted = sizes.pixels * sizes.stacks * sizes.matrices
    others = [_as_wanted(tile, options) for tile in _fitting(limits) if _computed(tile, sizes) <= _MAX_WASTE * wanted]
    return list(dict.fromkeys(tile.words for tile in (default, replace(default, ahead=0), *others)))


def parse_group_tile(words: str) -> GroupTile:
    """`16x8x4x2x2`. Raises OptionError."""
    try:
        tile = GroupTile(*map(int, words.split("x")))
    except (ValueError, TypeError) as e:
        example = TILES[0].words
        raise OptionError(
            f"tile {words!r} is not known; write tx x ty x tp x tv x depth x split, e.g. {example}, and x1 behind it "
            "where the first stage is fetched ahead"
        ) from e
    if tile.ahead not in (0, 1):
        raise OptionError(f"tile {words!r}: its seventh number is 1 or is left out")
    return tile


def group_tile(words: str, options: Options, limits: Limits, sizes: StackProduct) -> GroupTile:
    """The tile in words; where there are none, the default. Raises OptionError."""
    return parse_group_tile(words) if words else choose_group_tile(options, limits, sizes)


def _fitting(limits: Limits) -> list[GroupTile]:
    return [
        tile
        for tile in TILES
        if tile.local_bytes <= (limits.local_bytes or _LOCAL_BYTES)
        and tile.work_group <= (limits.max_work_group or 256)
    ]


def _is_desktop(limits: Limits) -> bool:
    return not limits.unified_memory and not limits.cpu_device


def _tiles(tile: GroupTile, sizes: StackProduct) -> int:
    return -(-sizes.pixels // tile.tile_pixels) * -(-sizes.stacks // tile.tile_vectors) * sizes.matrices


def _computed(tile: GroupTile, sizes: StackProduct) -> int:
    """Vectors, those beyond the edges too."""
    return _tiles(tile, sizes) * tile.tile_pixels * tile.tile_vectors


def _as_wanted(tile: GroupTile, options: Options) -> GroupTile:
    """Vulkan's compiler likes the loop without branches."""
    return replace(tile, ahead=int(options.backend == "vulkan" and tile.split == 1))


def choose_group_tile(options: Options, limits: Limits, sizes: StackProduct) -> GroupTile:
    """Choose on a GPU with memory of its own by the cost of products.

    Elsewhere take what wastes least of what it computes, large tiles first as long as there are enough work-groups.

    Raises OptionError where the device has too little local memory, or too small work-groups, for any.
    """
    found = cheapest_tile(options, limits, sizes)
    if found is None:
        least = min(TILES, key=lambda tile: tile.local_bytes)
        raise OptionError(
            f"a tile needs {least.local_bytes} bytes of local memory and a work-group of {least.work_group}; the "
            f"device has {limits.local_bytes} and {limits.max_work_group}"
        )
    return found


def cheapest_tile(options: Options, limits: Limits, sizes: StackProduct) -> GroupTile | None:
    """Return the cheapest of the tiles that fit the device, or None if none does.

    On a desktop one vector of channels is computed alone only where there is no other: the source is read for each.
    """
    alone = sizes.stacks == 1 or not _is_desktop(limits)
    tiles = [_as_wanted(tile, options) for tile in _fitting(limits) if alone or tile.tile_vectors > 1]

    def cost(tile: GroupTile) -> float:
        if _is_desktop(limits):
            return min(_desktop_costs(tile, options, limits, sizes).values())
        return _phone_cost(tile, limits, sizes)

    return min(tiles, key=cost, default=None)


def parts_of_depth(tile: GroupTile, options: Options, limits: Limits, sizes: StackProduct) -> int:
    """Return into how many parts the depth goes, which several work-groups take; 1: it is not divided."""
    costs = _desktop_costs(tile, options, limits, sizes)
    return min(costs, key=lambda parts: costs[parts])


def _desktop_costs(tile: GroupTile, options: Options, limits: Limits, sizes: StackProduct) -> dict[int, float]:
    """Return the cost for each number of parts of the depth."""
    tiles, stages = _tiles(tile, sizes), -(-sizes.depth // tile.depth)
    results = 4 * sizes.pixels * sizes.stacks * sizes.matrices
    divides = sizes.divides and tile.split == 1 and _is_desktop(limits)

    def cost(parts: int) -> float:
        depth = 4 * tile.depth * parts * -(-stages // parts)
        costs, api = OF_CONVOLUTIONS[options.backend], options.backend
        return desktop_cost(tile, costs, tiles=tiles, depth=depth, parts=parts, results=results, limits=limits, api=api)

    return {parts: cost(parts) for parts in _PARTS if parts == 1 or (divides and stages >= _FEWEST * parts)}


def _phone_cost(tile: GroupTile, limits: Limits, sizes: StackProduct) -> float:
    groups = _tiles(tile, sizes)
    few = _BUSY_ITEMS / tile.work_group if sizes.stacks == 1 else 1.0  # pixels alone keep the units busy
    units = limits.compute_units or (_UNITS if limits.unified_memory else UNITS)
    idle = max(1.0, max(1.0, few) * _BUSY * units / (groups * math.sqrt(tile.split)))
    reuse = 1 + 4.0 / (tile.tp + 4 * tile.tv) + 0.1 * (tile.split - 1)
    return _computed(tile, sizes) * idle * reuse
