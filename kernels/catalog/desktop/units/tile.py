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
        """The distance of a matrix of the right operand from the next one across."""
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
        """Vectors of a stage of the left operand."""
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
        """1 if every work-item loads as many."""
        return int(self.vectors_a % self.group == 0)

    @derived
    def even_b(self) -> int:
        return int(self.vectors_b % self.group == 0)

    @derived
    def start_b(self) -> int:
        """The place of the right operand in a side of local memory."""
        return self.tile_rows * self.pitch_a

    @derived
    def side(self) -> int:
        return self.start_b + (0 if self.direct else self.vectors_b // self.row_b * self.pitch_b)

    @derived
    def chunks(self) -> int:
        """Chunks of two steps in a stage; the next step is read while one is multiplied."""
        return max(1, self.steps // _CHUNK)

    @derived
    def look(self) -> int:
        return self.chunks - 1

    @derived
    def steps_ahead(self) -> int:
        """Steps ahead with six sides, whose steps are two or more."""
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
        """Vectors of a row of a subgroup's matrices, in singles."""
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
        """Vectors of the strips of a part."""
        return self.down * self.across * self.strip

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
