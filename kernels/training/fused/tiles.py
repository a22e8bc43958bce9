"""Sharing out of a training's product, and the choice of a way: by an estimate of its time."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from kernels.catalog.squares_tile import SquaresTile
from kernels.catalog.work_group import group_conflict
from kernels.options import Limits
from kernels.source.tile import derived

_UNITS = 64
"""Compute units where the device does not tell."""
_FETCH, _MEETING, _LAUNCH = 700, 400, 5000
"""Cycles: to wait for memory, to add up what the teams have, and of one more step."""
_MOST_PARTS = 64


@dataclass(frozen=True)
class ProductTile(SquaresTile):
    """A team of `gx` x `gy` work-items; `slices` teams of a work-group share out the depth."""

    slices: int
    column_sums: int = 0

    team = derived(lambda tile: tile.gx * tile.gy)
    group = derived(lambda tile: tile.team * tile.slices)
    pitch_b = derived(lambda tile: tile.tile_columns4 + 1)
    sums_all = derived(lambda tile: tile.sums + tile.column_sums * tile.cv)
    squares_a = derived(lambda tile: tile.tile_rows4 * tile.depth)
    squares_b = derived(lambda tile: tile.tile_columns4 * tile.depth)
    fetches_a = derived(lambda tile: -(-tile.squares_a // tile.team))
    fetches_b = derived(lambda tile: -(-tile.squares_b // tile.team))
    fetched_a = derived(lambda tile: 4 * tile.fetches_a)
    fetched_b = derived(lambda tile: 4 * tile.fetches_b)
    local_a_slice = derived(lambda tile: tile.tile_depth * tile.pitch)
    local_b_slice = derived(lambda tile: tile.tile_depth * tile.pitch_b)
    local_a = derived(lambda tile: tile.slices * tile.local_a_slice)
    local_b = derived(lambda tile: tile.slices * tile.local_b_slice)
    local_meeting = derived(lambda tile: tile.sums_all * tile.group)

    @property
    def local_bytes(self) -> int:
        """Local memory of a work-group."""
        return 16 * (self.local_a + self.local_b + (self.local_meeting if self.slices > 1 else 0))


_SHAPES = (
    (8, 4, 1, 1, 4, 8), (8, 4, 1, 1, 4, 4), (8, 4, 1, 1, 4, 2), (8, 4, 1, 1, 4, 1), (4, 8, 1, 1, 4, 8),
    (4, 8, 1, 1, 4, 4), (8, 8, 1, 1, 4, 4), (8, 8, 1, 1, 4, 2), (8, 8, 1, 1, 4, 1), (8, 8, 2, 1, 4, 4),
    (8, 8, 2, 1, 4, 2), (8, 8, 2, 1, 4, 1), (8, 16, 2, 1, 4, 2), (8, 16, 2, 1, 4, 1), (16, 16, 1, 1, 8, 1),
    (16, 16, 2, 1, 4, 1), (4, 16, 1, 1, 4, 4), (4, 16, 2, 1, 4, 2), (4, 32, 1, 1, 4, 1), (16, 8, 2, 1, 4, 2),
    (16, 8, 2, 1, 4, 1), (4, 8, 1, 1, 4, 1),
)  # fmt: skip


@dataclass(frozen=True)
class Shared:
    """A product's tile, and into how many parts its depth goes, which a step behind it adds up."""

    tile: ProductTile
    parts: int
    each: int
    """Depth of a part."""


def has_room(limits: Limits) -> bool:
    """Return whether a team fits the device."""
    return bool(_fitting(limits, sums=True))


def share(rows: int, columns4: int, depth: int, limits: Limits, *, sums: bool, may_part: bool) -> Shared:
    """The way of the least estimated time, on a device that has room."""
    ways = [Shared(t, n, depth // n) for t in _fitting(limits, sums=sums) for n in _parts(depth, may_part)]
    return min(ways, key=lambda way: _cycles(way, rows, columns4, limits.compute_units or _UNITS))


def _fitting(limits: Limits, *, sums: bool) -> list[ProductTile]:
    tiles = [ProductTile(*shape, int(sums)) for shape in _SHAPES]
    return [t for t in tiles if group_conflict(limits, group=t.group, local_bytes=t.local_bytes) is None]


def _parts(depth: int, may_part: bool) -> list[int]:
    return [n for n in range(1, _MOST_PARTS + 1) if n == 1 or (may_part and depth % (4 * n) == 0 and depth // n >= 64)]


def _cycles(way: Shared, rows: int, columns4: int, units: int) -> float:
    tile = way.tile
    groups = ceil(rows / (4 * tile.tile_rows4)) * ceil(columns4 / tile.tile_columns4) * way.parts
    stages = ceil(way.each / (tile.slices * tile.tile_depth))
    vectors = tile.rv + tile.cv
    turn = (4 * tile.sums + 10 * vectors) / 4  # of four schedulers, for one number of the depth and 32 work-items
    computing = ceil(groups / units) * tile.group / 32 * stages * tile.tile_depth * turn
    waiting = stages * (_FETCH + tile.tile_depth * (4 * tile.sums + 8 * vectors))
    after = (_MEETING if tile.slices > 1 else 0) + (_LAUNCH + 60 * way.parts if way.parts > 1 else 0)
    return max(computing, waiting) + after
