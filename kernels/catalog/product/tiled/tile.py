"""Tiles of `tiled`: what a work-item and what a work-group computes."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.catalog.squares_tile import SquaresTile
from kernels.catalog.tile_text import numbers
from kernels.errors import OptionError
from kernels.source.tile import derived

MEANING, EXAMPLE = "gx x gy x rows4 x columns4 x depth4", "16x16x2x2x4"


@dataclass(frozen=True)
class ProductTile(SquaresTile):
    """`ahead` 1: the first stage is fetched ahead of the loop, which then has no branches. A fetch is a square of 4 x 4
    numbers; those of the left operand come first."""

    ahead: int = 0

    @property
    def rows(self) -> int:
        return 4 * self.tile_rows4

    @property
    def columns(self) -> int:
        return 4 * self.tile_columns4

    @property
    def local_bytes(self) -> int:
        """Bytes of both operands in single precision."""
        return 16 * (self.local_a + self.local_b)

    @property
    def words(self) -> str:
        """The text that `--product 'tiled 16x16x2x2x4'` takes."""
        sizes = (self.gx, self.gy, self.rv, self.cv, self.depth)
        return "x".join(map(str, (*sizes, *([1] if self.ahead else []))))

    @property
    def is_wide(self) -> bool:
        """Three vectors of columns a work-item: timed on GPUs with memory of their own alone."""
        return self.cv == 3

    group = derived(lambda tile: tile.gx * tile.gy)
    """Work-items of a work-group."""

    @property
    def work_group(self) -> int:
        return self.group

    @property
    def split(self) -> int:
        return 1

    fetches_a = derived(lambda tile: tile.tile_rows4 * tile.depth)
    fetches_all = derived(lambda tile: (tile.tile_rows4 + tile.tile_columns4) * tile.depth)
    fetches = derived(lambda tile: -(-tile.fetches_all // tile.group))
    """Fetches of a work-item."""
    fetched = derived(lambda tile: 4 * tile.fetches)
    """Vectors of a work-item."""
    half_a = derived(lambda tile: 4 * tile.depth * tile.pitch)
    """Vectors of a stage of the left operand."""
    half_b = derived(lambda tile: 4 * tile.depth * tile.tile_columns4)
    local_a = derived(lambda tile: 2 * tile.half_a)
    local_b = derived(lambda tile: 2 * tile.half_b)


TILES = tuple(
    ProductTile(*sizes)
    for sizes in (
        (16, 16, 4, 2, 2), (16, 16, 2, 4, 2), (16, 8, 4, 2, 2), (8, 16, 2, 4, 2), (8, 8, 4, 2, 2), (8, 8, 2, 4, 2),
        (16, 16, 2, 2, 2), (16, 16, 2, 2, 4), (16, 8, 2, 2, 2), (16, 8, 2, 2, 4), (8, 16, 2, 2, 2), (8, 8, 2, 2, 2),
        (8, 8, 2, 2, 4), (16, 8, 1, 2, 4), (16, 16, 1, 1, 4), (8, 8, 1, 2, 4), (8, 8, 1, 1, 4), (8, 4, 1, 1, 4),
        (16, 16, 4, 2, 2, 1), (16, 16, 2, 4, 2, 1), (16, 8, 4, 2, 2, 1), (16, 16, 2, 2, 2, 1), (16, 16, 2, 2, 4, 1),
        (16, 8, 2, 2, 2, 1), (16, 8, 2, 2, 4, 1), (8, 8, 2, 2, 2, 1), (16, 8, 2, 3, 2), (16, 8, 2, 3, 2, 1),
        (16, 4, 3, 3, 2),
    )
)  # fmt: skip
"""gx is a multiple of 8 and gy of 4, as the kernel deals work-items out; depth4 is even."""


def parse(words: str) -> ProductTile:
    """A tile of its words. Raises OptionError."""
    is_ahead = words.count("x") == 5 and words.endswith("x1")
    gx, gy, rv, cv, depth = numbers(words[:-2] if is_ahead else words, MEANING, EXAMPLE)
    tile = ProductTile(gx, gy, rv, cv, depth, int(is_ahead))
    if tile.gx % 8 or tile.gy % 4 or tile.depth % 2:
        raise OptionError(f"tile {words!r}: gx is a multiple of 8, gy one of 4, depth4 one of 2, e.g. {EXAMPLE}")
    return tile
