"""The tile that a work-group computes together through local memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernels.errors import OptionError
from kernels.options import Limits, Options


@dataclass(frozen=True)
class GroupTile:
    """`tx` x `ty` work-items, each `tp` pixels x `tv` vectors of four channels; `depth` stacks of inputs a stage;
    `split` such parts in a work-group, which share out the sum; `ahead` 1: the first stage is fetched ahead of the
    loop, which then has no branches."""

    tx: int
    ty: int
    tp: int
    tv: int
    depth: int
    split: int = 1
    ahead: int = 0

    @property
    def group(self) -> int:
        """Work-items of a work-group."""
        return self.tx * self.ty * self.split

    @property
    def pixels(self) -> int:
        return self.tx * self.tp

    @property
    def vectors(self) -> int:
        return self.ty * self.tv

    @property
    def local_bytes(self) -> int:
        """Both operands, twice; then the parts' sums."""
        operands = 2 * self.depth * self.split
        sums = (self.split - 1) * self.tp * self.tv * self.tx * self.ty
        return 16 * (max(operands * self.pixels, sums) + operands * 4 * self.vectors)

    @property
    def tunables(self) -> Mapping[str, int]:
        return {
            "TX": self.tx, "TY": self.ty, "TP": self.tp, "TV": self.tv, "DEPTH": self.depth, "SPLIT": self.split,
            "AHEAD": self.ahead,
        }  # fmt: skip

    @property
    def words(self) -> str:
        """As `parse_group_tile` reads it."""
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
_UNITS, _DESKTOP_UNITS = 8, 64
"""Compute units where the device does not tell: of a phone, and of a device with memory of its own."""


def group_tile_words(options: Options, limits: Limits, *, pixels: int, stacks: int, matrices: int) -> list[str]:
    """Tiles worth trying, the default first; none that would compute more than four times what is wanted."""
    default = choose_group_tile(options, limits, pixels=pixels, stacks=stacks, matrices=matrices)

    def waste(tile: GroupTile) -> float:
        groups = -(-pixels // tile.pixels) * -(-stacks // tile.vectors)
        return groups * tile.pixels * tile.vectors / (pixels * stacks)

    others = [_as_wanted(tile, options) for tile in _fitting(limits) if waste(tile) <= _MAX_WASTE]
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


def group_tile(words: str, options: Options, limits: Limits, *, pixels: int, stacks: int, matrices: int) -> GroupTile:
    """The tile in words; where there are none, the default. Raises OptionError."""
    if words:
        return parse_group_tile(words)
    return choose_group_tile(options, limits, pixels=pixels, stacks=stacks, matrices=matrices)


def _fitting(limits: Limits) -> list[GroupTile]:
    return [
        tile
        for tile in TILES
        if tile.local_bytes <= (limits.local_bytes or _LOCAL_BYTES) and tile.group <= (limits.max_work_group or 256)
    ]


def _as_wanted(tile: GroupTile, options: Options) -> GroupTile:
    """Vulkan's compiler likes the loop without branches (docs/decisions/0037)."""
    return replace(tile, ahead=int(options.backend == "vulkan" and tile.split == 1))


def choose_group_tile(options: Options, limits: Limits, *, pixels: int, stacks: int, matrices: int) -> GroupTile:
    """The tile that wastes least of what it computes, large ones first as long as there are enough work-groups.

    Raises OptionError where the device has too little local memory, or too small work-groups, for any.
    """
    fitting = _fitting(limits)
    if not fitting:
        least = min(TILES, key=lambda tile: tile.local_bytes)
        raise OptionError(
            f"a tile needs {least.local_bytes} bytes of local memory and a work-group of {least.group}; the device has "
            f"{limits.local_bytes} and {limits.max_work_group}"
        )

    units = limits.compute_units or (_UNITS if limits.unified_memory else _DESKTOP_UNITS)

    def cost(tile: GroupTile) -> float:
        groups = -(-pixels // tile.pixels) * -(-stacks // tile.vectors) * matrices
        computed = groups * tile.pixels * tile.vectors
        idle = max(1.0, _BUSY * units / (groups * math.sqrt(tile.split)))
        reuse = 1 + 4.0 / (tile.tp + 4 * tile.tv) + 0.1 * (tile.split - 1)
        return computed * idle * reuse

    return _as_wanted(min(fitting, key=cost), options)
