"""Products by NVIDIA's warpgroups: 128 work-items multiply halves from local memory at once, by `wgmma`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels.catalog.desktop.product import turned
from kernels.catalog.family import Call, Calls, Constants
from kernels.catalog.product.depth_parts import depth_parts
from kernels.catalog.product.kernel_parts import BATCHED, BOUNDS, operands
from kernels.catalog.product.sizes import Product
from kernels.catalog.tile_text import numbers
from kernels.catalog.work_group import group_conflict
from kernels.errors import OptionError
from kernels.options import WARPGROUP, Limits, Options
from kernels.source.kernel import Kernel, LocalArray
from kernels.source.tile import Tile, derived

_MEANING, _EXAMPLE = "warpgroups down x 64 rows down x columns x depth x stages", "2x1x256x64x4"
_LOCAL_BYTES = 227 << 10
"""Local memory of a work-group of compute capability 9.0, whatever OpenCL tells."""
_ROWS, _LANES = 64, 128
_ENDS, _READ = 1100, 38
"""Depth in whose time a tile begins and ends; what reading a line costs. After seven products on an H100."""
_UNITS = 132
"""Compute units where the device does not tell."""


@dataclass(frozen=True)
class WarpgroupTile(Tile):
    """`down` warpgroups, each `fr` x 64 rows by `columns` columns; a stage is `tile_depth` deep, and there are `stages`
    of them in local memory. `turned`: the right operand lies by columns. `ahead`: stages less that are on their way, so
    that a product goes on while the next one begins."""

    down: int
    fr: int
    columns: int
    tile_depth: int
    stages: int
    turned: int
    ahead: int = 1

    @property
    def words(self) -> str:
        """The text that `--product 'warpgroups 2x1x256x64x4'` takes."""
        return "x".join(map(str, (self.down, self.fr, self.columns, self.tile_depth, self.stages)))

    group = derived(lambda tile: _LANES * tile.down)
    """Work-items of a work-group."""
    tile_rows = derived(lambda tile: _ROWS * tile.down * tile.fr)
    depth8 = derived(lambda tile: tile.tile_depth // 8)
    span = derived(lambda tile: 2 * tile.tile_depth)
    """Bytes of a line along the depth."""
    lines = derived(lambda tile: tile.group // tile.depth8)
    """Lines along the depth that a work-group loads at once."""
    lines_b = derived(lambda tile: tile.group // (tile.columns // 8))
    """Lines of the right operand that it loads at once where that lies by rows."""
    loads_a = derived(lambda tile: tile.tile_rows // tile.lines)
    loads_b = derived(lambda tile: tile.columns * tile.depth8 // tile.group)
    eights = derived(lambda tile: tile.columns // 8)
    start_b = derived(lambda tile: tile.tile_rows * tile.span)
    """Bytes of a stage's left operand, and then of both."""
    side = derived(lambda tile: tile.start_b + tile.columns * tile.span)
    pitch_strip = derived(lambda tile: tile.columns // 4 + 2)
    """Vectors of four sums from a row to the next, against conflicts of banks."""
    strip = derived(lambda tile: 16 * tile.pitch_strip)
    """Vectors of a warp's 16 rows."""
    local = derived(lambda tile: max(tile.stages * tile.side // 16, tile.group // 32 * tile.strip))
    """Vectors of 16 bytes: the stages; afterwards a strip of sums a warp."""


def _wgmma(tile: WarpgroupTile) -> str:
    """The products of a stage."""
    count = tile.columns // 2
    kind = {128: 1, 64: 2, 32: 3}[tile.span]

    def described(start: str, leading: int, stride: int, layout: int) -> str:
        constant = leading >> 4 << 16 | stride >> 4 << 32 | layout << 62
        return f"((ulong)(({start}) >> 4) | {constant:#x}UL)"

    lines = ["HOPPER(wgmma.fence.sync.aligned);"]
    for step in range(tile.tile_depth // 16):
        for f in range(tile.fr):
            left = described(f"read + {32 * step} + (warpgroup * FR + {f}) * {64 * tile.span}", 16, 8 * tile.span, kind)
            right = (
                described(f"read + START_B + {32 * step}", 16, 8 * tile.span, kind)
                if tile.turned
                else described(f"read + START_B + {2048 * step}", 128 * tile.tile_depth, 1024, 1)
            )
            registers = ", ".join(f"%{index}" for index in range(count))
            sums = ", ".join(f'"+f"(sums{f}[{index}])' for index in range(count))
            lines.append(
                f'__asm__ volatile("//sm_90a {{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned'
                f".m64n{tile.columns}k16.f32.f16.f16 {{{registers}}}, %{count}, %{count + 1}, p, 1, 1, 0, "
                f'{int(not tile.turned)}; }}" : {sums} : "l"({left}), "l"({right}));'
            )
    return "\n        ".join([*lines, "HOPPER(wgmma.commit_group.sync.aligned);"])


def _write(text: str, constants: Mapping[str, int]) -> str:
    names = ("DOWN", "FR", "COLUMNS", "TILE_DEPTH", "STAGES", "TURNED", "AHEAD")
    tile = WarpgroupTile(*(constants[name] for name in names))
    each = range(tile.columns // 2)
    declared = " ".join(
        f"float sums{f}[{len(each)}]; " + " ".join(f"sums{f}[{i}] = 0.0f;" for i in each) for f in range(tile.fr)
    )
    return text.replace("SUMS_DECLARED", declared).replace("MULTIPLY_STAGE", _wgmma(tile))


KERNEL = Kernel(
    "matmul_warpgroups",
    Path(__file__).with_name("kernel.c"),
    operands(4),
    ("rows", *BATCHED),
    BOUNDS,
    WarpgroupTile,
    (LocalArray("tile", "LOCAL", storage="raw8"),),
    warpgroups=True,
    rewrite=_write,
)
TILES = (
    "2x1x256x64x4", "2x2x128x64x4", "2x1x256x64x3", "2x2x128x64x3", "2x1x128x64x4", "1x2x128x64x4", "2x1x128x64x3",
    "1x1x256x64x4", "1x1x128x64x4", "1x1x128x64x6", "2x1x64x64x4", "1x1x64x64x4", "1x1x64x64x6", "1x2x64x64x4",
)  # fmt: skip
"""Large first."""


class Warpgroups:
    """Products of halves, added up in single."""

    name = "warpgroups"
    summary = f"by warpgroups, halves multiplied from local memory and singles added; tile: {_MEANING}, e.g. {_EXAMPLE}"

    def why_not(self, product: Product, options: Options, limits: Limits, tile: str = "") -> str | None:
        if options.backend != "opencl" or WARPGROUP not in limits.matrix_units:
            return "the device has no warpgroups through OpenCL (NVIDIA's of compute capability 9.0)"
        if not options.half:
            return f"warpgroups multiply halves; the precision is {options.precision}"
        if product.depth % 8 or product.columns % 8:
            return "rows of both operands are read by eight halves, and depth or columns are no multiple of 8"
        shape = _tile(tile or TILES[-1], turned=product.right_is_constant)
        within = limits.within(KERNEL.name)
        if 16 * shape.local > _LOCAL_BYTES:
            return f"the stages take {16 * shape.local} bytes of local memory, and there are {_LOCAL_BYTES}"
        if not shape.turned and shape.lines_b % 8:
            return "a work-group loads less than eight lines of the right operand at once"
        return group_conflict(within, group=shape.group, local_bytes=0)

    def tiles(self, product: Product, options: Options, limits: Limits) -> Sequence[str]:
        fitting = [tile for tile in TILES if self.why_not(product, options, limits, tile) is None]
        return sorted(fitting, key=lambda tile: _cost(_tile(tile, turned=True), product, limits))

    def lower(self, product: Product, constants: Constants, options: Options, limits: Limits, tile: str = "") -> Calls:
        words = tile or self.tiles(product, options, limits)[0]
        shape = _tile(words, turned=product.right_is_constant)
        weight = turned(constants["weight"]) if shape.turned else None
        ints = {} if weight is None else {"b_stride": weight.shape[1] // 8}
        across, down = -(-product.columns // shape.columns), -(-product.rows // shape.tile_rows)
        parts = _parts(shape, product, limits)
        if parts > 1:
            deep = product.depth // parts
            apart = deep // 8 if shape.turned else deep * product.columns4
            ints |= {"depth": deep, "a_batch": deep // 4, "b_batch": apart}
        items = (across * shape.group, down, parts * product.batch)
        switches = {"EIGHTS_A": 1}
        return (Call(KERNEL, items, shape, switches, ints, shape.group, weight, parts=parts),)


def _tile(words: str, *, turned: bool) -> WarpgroupTile:
    """The tile in words. Raises OptionError."""
    down, fr, columns, depth, stages = numbers(words, _MEANING, _EXAMPLE)
    if columns not in (64, 128, 256) or depth not in (16, 32, 64) or fr * columns > 256 or stages < 2:
        raise OptionError(
            f"tile {words!r}: columns are 64, 128 or 256 and with the rows at most 256, the depth is 16, 32 or 64, and "
            f"there are two stages or more, e.g. {_EXAMPLE}"
        )
    return WarpgroupTile(down, fr, columns, depth, stages, int(turned), 2 if stages > 3 else 1)


def _parts(tile: WarpgroupTile, product: Product, limits: Limits) -> int:
    return depth_parts(product, limits, rows=tile.tile_rows, columns=tile.columns, depth=tile.tile_depth)


def _cost(tile: WarpgroupTile, product: Product, limits: Limits) -> float:
    """About the time on a device, for comparing tiles: of a unit's tiles one after the other what is multiplied, with
    what begins and ends a tile, which several at once hide, and what is read a product."""
    groups = -(-product.columns // tile.columns) * -(-product.rows // tile.tile_rows) * product.batch
    parts = _parts(tile, product, limits)
    turns = math.ceil(groups * parts / (limits.compute_units or _UNITS))
    at_once = max(1, min(turns, _LOCAL_BYTES // (16 * tile.local), 2048 // tile.group))
    read = 0.55 + _READ * (1 / tile.tile_rows + 1 / tile.columns)
    return turns * tile.tile_rows * tile.columns * (product.depth / parts + _ENDS / at_once) * read
