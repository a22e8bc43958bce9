"""The tile of a work-group whose subgroups multiply matrices at once, on units that the device has for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernels.catalog.tile_text import numbers
from kernels.errors import OptionError
from kernels.source.kernel import LocalArray
from kernels.source.tile import Tile, derived

MEANING = "subgroups down x across x matrices down x across x steps x parts of the depth x sides"
EXAMPLE = "2x2x4x4x2x1x2"
_DIRECT, _STRAIGHT, _DEALT = 4, 5, 6
_CHUNK = 2
_SUMS = 64
"""Vectors of a matrix of sums that a subgroup looks at."""
_PAD = 1
"""Vectors of eight halves (16 bytes) more a row, against conflicts of banks."""
_AT_ONCE = 4
"""Vectors that a work-item reads before it stores the first of them."""
_FEW_STAGES = 24
"""Fewer stay a loop: a driver writes eight stages out, and reading so many instructions takes longer than they save
(measured with 12 and 48)."""
Kind = Literal["local", "direct", "straight", "dealt"]
LOCAL = LocalArray("tile", "LOCAL", storage="raw8")


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
        """The text that `--product 'matrix_units 2x2x4x4x2x1x2'` takes."""
        return "x".join(map(str, (self.down, self.across, self.fr, self.fc, self.steps, self.parts, self.sides)))

    @property
    def direct(self) -> bool:
        """True if the right operand is read from memory as work-items have it."""
        return self.sides >= _DIRECT

    @property
    def straight(self) -> bool:
        """True if the left one is, too."""
        return self.sides == _STRAIGHT

    @property
    def dealt(self) -> bool:
        """True if the left one lies there as they have it."""
        return self.sides == _DEALT

    @property
    def kind(self) -> Kind:
        """The places that operands are read from: the cost depends on them."""
        return "dealt" if self.dealt else "straight" if self.straight else "direct" if self.direct else "local"

    def few_stages(self, depth: int) -> int:
        """`FEW` of a kernel: whether its loop over stages stays one."""
        return int(depth < _FEW_STAGES * self.tile_depth)

    @property
    def local_bytes(self) -> int:
        """Bytes of both operands, and later of the sums."""
        return 16 * self.local

    group = derived(lambda tile: tile.down * tile.across * tile.parts * tile.width)
    """Work-items of a work-group."""
    sums = derived(lambda tile: tile.fr * tile.fc)
    tile_rows = derived(lambda tile: tile.down * tile.fr * tile.unit_rows)
    tile_columns8 = derived(lambda tile: tile.across * tile.fc * tile.unit_columns // 8)
    tile_depth = derived(lambda tile: tile.parts * tile.steps * tile.unit_depth)
    tile_depth8 = derived(lambda tile: tile.tile_depth // 8)
    pitch_a = derived(lambda tile: tile.tile_depth8 + _PAD)
    pitch_b = derived(lambda tile: tile.row_b + _PAD)
    row_b = derived(lambda tile: tile.tile_depth8 if tile.turned else tile.tile_columns8)
    """Vectors of a row of the right operand, or of a column where it lies by columns."""
    right_columns = derived(lambda tile: tile.unit_columns * tile.pitch_b if tile.turned else tile.unit_columns // 8)
    """The distance of a matrix of the right operand from the next one across."""
    right_depth = derived(lambda tile: tile.unit_depth // 8 if tile.turned else tile.unit_depth * tile.pitch_b)
    spread_a = derived(lambda tile: _spread(tile.tile_depth8, tile.tile_rows))
    """Lines that eight neighbours put into local memory at once, chosen to meet no banks of each other."""
    spread_b = derived(lambda tile: _spread(tile.row_b, tile.vectors_b // tile.row_b))
    vectors_a = derived(lambda tile: tile.tile_rows * tile.tile_depth8)
    """Vectors of a stage of the left operand."""
    vectors_b = derived(lambda tile: tile.tile_depth * tile.tile_columns8)
    loads_a = derived(lambda tile: -(-tile.vectors_a // tile.group))
    loads_b = derived(lambda tile: -(-tile.vectors_b // tile.group))
    even_a = derived(lambda tile: int(tile.vectors_a % tile.group == 0))
    """1 if every work-item loads as many."""
    even_b = derived(lambda tile: int(tile.vectors_b % tile.group == 0))
    start_b = derived(lambda tile: tile.tile_rows * tile.pitch_a)
    """The place of the right operand in a side of local memory."""
    side = derived(lambda tile: tile.start_b + (0 if tile.direct else tile.vectors_b // tile.row_b * tile.pitch_b))
    chunks = derived(lambda tile: max(1, tile.steps // _CHUNK))
    """Chunks of two steps in a stage; the next step is read while one is multiplied."""
    look = derived(lambda tile: tile.chunks - 1)
    steps_ahead = derived(lambda tile: max(1, tile.steps - 1))
    """Steps ahead with six sides, whose steps are two or more."""
    twice_rows = derived(lambda tile: 2 * tile.fr)
    twice_columns = derived(lambda tile: 2 * tile.fc)
    strip_columns4 = derived(lambda tile: tile.fc * tile.unit_columns // 4)
    strip_vectors = derived(lambda tile: tile.unit_rows * tile.strip_columns4)
    """Vectors of a row of a subgroup's matrices, in singles."""
    even_steps = derived(lambda tile: tile.steps * (1 + tile.steps % 2))
    """Steps after which the matrices of the next step are in the same places again."""
    at_once = derived(lambda tile: min(_AT_ONCE, -(-tile.strip_vectors // (tile.parts * tile.width))))
    """Vectors of a strip that a work-item reads before it stores the first of them."""
    statistics = derived(lambda tile: 2 * (tile.parts + 1) * tile.tile_rows)
    """Two numbers of each row: of each part, and of all."""
    pitch_strip = derived(lambda tile: tile.strip_columns4 + _PAD)
    strip = derived(lambda tile: tile.unit_rows * tile.pitch_strip)
    part_strips = derived(lambda tile: tile.down * tile.across * tile.strip)
    """Vectors of the strips of a part."""

    @derived
    def local(self) -> int:
        """The sides; afterwards a strip of sums a subgroup."""
        sides = 0 if self.sides > _DIRECT else min(self.sides, 2) * self.side
        return max(sides, self.down * self.across * (_SUMS if self.dealt else self.parts * self.strip))


def parse(words: str, *, turned: bool, unit: tuple[int, int, int], width: int) -> UnitTile:
    """The tile in words, on units of rows x columns x depth and subgroups of `width`. Raises OptionError."""
    fields = (*numbers(words, MEANING, EXAMPLE), int(turned), *unit, width)
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


def _spread(vectors: int, lines: int) -> int:
    """Return how many of `lines` lines, of so many vectors and one of padding, eight neighbours put at once."""
    return 8 // vectors if vectors < 8 and 8 % vectors == 0 and lines % 8 == 0 else 1
