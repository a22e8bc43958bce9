"""Attention whose operands stay in registers, where it is known which work-item holds what of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.catalog.desktop.units.choice import deals_out_as_known
from kernels.catalog.desktop.units.known import MATRIX, WIDTH, KnownTile
from kernels.ir.graph import Node
from kernels.lower.gpu.bodies import body
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, LocalArray, result
from kernels.source.tile import derived

_COLUMNS, _EIGHTS = 64, 4
"""Columns of the result, and vectors of a step along the depth."""
_UNITS = 64
"""Compute units where the device does not tell."""
_BUSY = 16
"""Subgroups of a compute unit that hide each other's loads."""


@dataclass(frozen=True)
class RegisterAttentionTile(KnownTile):
    """`down` x `parts` subgroups, each `high` x 16 rows; `parts` share out the keys. A row of q has 32 x `depth32`.

    `keys_ahead`: whether a turn reads the next one's keys. `looks`: whether the kernel looks at matrices of known
    numbers.
    """

    high: int
    down: int
    parts: int
    depth32: int
    keys_ahead: int = 1
    looks: int = 0

    @derived
    def keys8(self) -> int:
        """Vectors of keys that a work-item has."""
        return 4 * self.depth32

    @derived
    def group(self) -> int:
        return WIDTH * self.down * self.parts

    @derived
    def lefts(self) -> int:
        """Vectors of q that a work-item has, above and below."""
        return self.high * self.depth32

    @derived
    def rows(self) -> int:
        return 2 * self.high

    @derived
    def scores(self) -> int:
        return 2 * self.high

    @derived
    def sums(self) -> int:
        return 4 * self.high

    @derived
    def known_sums(self) -> int:
        return 1

    @derived
    def known(self) -> int:
        """Vectors of matrices of known numbers."""
        return 2 * self.group if self.looks else 1

    @derived
    def local_parts(self) -> int:
        """Vectors of results that parts add up: one more a row, against conflicts of banks."""
        return self.lines * (_COLUMNS // 4 + 1) if self.parts > 1 else 1

    @derived
    def local_extents(self) -> int:
        """The largest score and the sum of a row."""
        return 2 * self.lines if self.parts > 1 else 1

    @property
    def lines(self) -> int:
        """Rows of all subgroups."""
        return MATRIX * self.high * self.down * self.parts


PLACES = tuple(f"{name}_{part}" for name in ("q", "k", "v", "dst") for part in ("start", "batch", "head", "row"))
REGISTER_KERNEL = Kernel(
    "attention_registers",
    body("attention_registers"),
    (Buffer("q"), Buffer("k"), Buffer("v"), result("dst")),
    ("rows", "keys", *PLACES),
    ("scale",),
    tile=RegisterAttentionTile,
    locals=(
        LocalArray("parts", "LOCAL_PARTS"),
        LocalArray("extents", "LOCAL_EXTENTS", 1),
        LocalArray("tile", "KNOWN", storage="raw8"),
    ),
    matrix_units=True,
    fragments=True,
)


def register_tile(node: Node, options: Options, limits: Limits) -> RegisterAttentionTile | None:
    """The tile; None where the kernel does not fit."""
    batch, heads, rows, _, depth, columns = node.attributes["sizes"]
    in_eights = not any(number % 8 for word in "qkv" for number in node.attributes[word])
    is_known = options.half and deals_out_as_known(limits, options.backend)
    if not is_known or columns != _COLUMNS or depth % (8 * _EIGHTS) or not in_eights:
        return None
    looks = int(options.backend == "vulkan")
    enough, single = _BUSY * (limits.compute_units or _UNITS), batch * heads * -(-rows // MATRIX)
    if single >= 2 * enough:
        return RegisterAttentionTile(2, 4, 1, depth // 32, 0, looks)
    if 2 * single >= enough:
        return RegisterAttentionTile(2, 2, 1, depth // 32, 1, looks)
    parts = 2 if 4 * single >= enough else 4
    return RegisterAttentionTile(1, 4 // parts, parts, depth // 32, 1, looks)
