"""Attention whose operands stay in registers, where it is known which work-item holds what of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernels.catalog.desktop.units.choice import deals_out_as_known
from kernels.catalog.desktop.units.known import MATRIX, WIDTH, KnownTile
from kernels.catalog.work_group import group_conflict
from kernels.lower.gpu.bodies import body
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, LocalArray, result
from kernels.source.tile import Tile, derived

_COLUMNS, _EIGHTS = 64, 4
"""Columns of the result that a work-item has eight of, and vectors of a step along the depth."""
_WIDE = 128
"""Columns, and depth, for which registers hold 16 rows."""
_UNITS = 64
"""Compute units where the device does not tell."""
_BUSY = 16
"""Subgroups of a compute unit that hide each other's loads."""


@dataclass(frozen=True)
class RegisterAttentionTile(KnownTile):
    """`down` x `parts` subgroups, each `high` x 16 rows; `parts` share out the keys. A row of q has 32 x `depth32`, of
    the result 64 x `columns64`.

    `keys_ahead`: whether a turn reads the next one's keys. `looks`: whether the kernel looks at matrices of known
    numbers.
    """

    high: int
    down: int
    parts: int
    depth32: int
    columns64: int
    keys_ahead: int = 1
    looks: int = 0

    keys8 = derived(lambda tile: 4 * tile.depth32)
    """Vectors of keys that a work-item has."""

    group = derived(lambda tile: WIDTH * tile.down * tile.parts)
    lefts = derived(lambda tile: tile.high * tile.depth32)
    """Vectors of q that a work-item has, above and below."""

    rows = derived(lambda tile: 2 * tile.high)
    scores = derived(lambda tile: 2 * tile.high)
    values = derived(lambda tile: 8 * tile.columns64)
    """Vectors of values that a work-item has."""

    sums_of_row = derived(lambda tile: 4 * tile.columns64)
    sums = derived(lambda tile: tile.sums_of_row * tile.high)
    pairs = derived(lambda tile: tile.sums_of_row // 2)
    """Pairs of a row's sums, which together have vectors of the result."""

    part_pitch = derived(lambda tile: _COLUMNS // 4 * tile.columns64 + 1)
    """One vector more, against conflicts of banks."""

    known_sums = derived(lambda _: 1)
    known = derived(lambda tile: 2 * tile.group if tile.looks else 1)
    """Vectors of matrices of known numbers."""

    local_parts = derived(lambda tile: tile.lines * tile.part_pitch if tile.parts > 1 else 1)
    """Vectors of results that parts add up."""

    local_extents = derived(lambda tile: 2 * tile.lines if tile.parts > 1 else 1)
    """The largest score and the sum of a row."""

    @property
    def tile_rows(self) -> int:
        return MATRIX * self.high * self.down

    @property
    def lines(self) -> int:
        """Rows of all subgroups."""
        return self.tile_rows * self.parts


@dataclass(frozen=True)
class CachedRegisterTile(RegisterAttentionTile):
    """Keys and values are a cache's; vectors of half of what is turned of a row of q."""

    half4: int = 0

    cached = derived(lambda _: 1)
    depth4 = derived(lambda tile: 8 * tile.depth32)


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


def of_a_cache(kernel: Kernel, name: str, tile: type[Tile]) -> Kernel:
    """Return the kernel whose keys and values are a cache's."""
    ints = ("rows", "heads", "kept", "capacity", "window", *(place for place in PLACES if place[0] in "qd"))
    buffers = (*kernel.buffers[:3], Buffer("ends", 1, "f32"), kernel.buffers[3])
    return replace(kernel, name=name, buffers=buffers, ints=ints, floats=("scale", "softcap"), tile=tile)


CACHED_REGISTER_KERNEL = of_a_cache(REGISTER_KERNEL, "attend_rows_registers", CachedRegisterTile)


def register_tile(
    sizes: Sequence[int], depth: int, columns: int, steps: Sequence[int], options: Options, limits: Limits
) -> RegisterAttentionTile | None:
    """Return the tile of a batch, heads and rows; None where the kernel does not fit. `steps`: between what is read."""
    batch, heads, rows = sizes
    is_known = options.half and deals_out_as_known(limits, options.backend)
    unfit = columns % _COLUMNS or depth % (8 * _EIGHTS) or any(step % 8 for step in steps)
    if not is_known or unfit or max(depth, columns) > _WIDE:
        return None
    looks, shape = int(options.backend == "vulkan"), (depth // 32, columns // _COLUMNS)
    narrow = max(depth, columns) <= _COLUMNS
    enough, single = _BUSY * (limits.compute_units or _UNITS), batch * heads * -(-rows // MATRIX)
    if narrow and 2 * single >= enough:
        many = single >= 2 * enough
        return RegisterAttentionTile(2, 4 if many else 2, 1, *shape, int(not many), looks)
    most = 1 if single >= enough else 2 if 4 * single >= enough else 4
    for parts in (parts for parts in (4, 2, 1) if parts <= most):
        tile = RegisterAttentionTile(1, 4 // parts if narrow else 1, parts, *shape, int(narrow), looks)
        needed = REGISTER_KERNEL.local_bytes(tile.constants)
        if group_conflict(limits, group=tile.group, local_bytes=needed) is None:
            return tile
    return None
