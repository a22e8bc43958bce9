"""softmax(scale * q k) v: scores stay in a work-group, which goes through the keys once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernels.catalog.work_group import group_conflict
from kernels.ir.graph import Node
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.layout import plain, single
from kernels.options import Limits, Options
from kernels.source.kernel import Buffer, Kernel, LocalArray, result
from kernels.source.tile import Tile, derived

from .attention_registers import (
    CACHED_REGISTER_KERNEL,
    PLACES,
    REGISTER_KERNEL,
    CachedRegisterTile,
    RegisterAttentionTile,
    of_a_cache,
    register_tile,
)

_UNITS = 64
"""Compute units where the device does not tell."""
_ACROSS, _HALF = 8, 32
"""Work-items along the keys, and the keys of which each has four."""
_LARGE, _NARROW, _VULKAN, _SMALL = ((8, 5), (8, 6), (8, 4)), (8, 7), (16, 3), (8, 2)
"""Work-items along the rows, and rows of each: on a device with memory of its own (narrow: short rows), and
elsewhere."""
_STEPS = 4
"""Vectors of the depth in a turn of the loop of a large tile."""


@dataclass(frozen=True)
class AttentionTile(Tile):
    """`gy` x 8 work-items, each `each` rows; vectors of a row of q and k, and of v; of the first `steps` at once;
    `halves` times 32 keys a turn."""

    gy: int
    each: int
    depth4: int
    columns4: int
    steps: int = 1
    halves: int = 2

    keys = derived(lambda tile: _HALF * tile.halves)
    group = derived(lambda tile: _ACROSS * tile.gy)
    tile_rows = derived(lambda tile: tile.each * tile.gy)
    pitch_q = derived(lambda tile: tile.tile_rows | 1)
    """Odd, against conflicts of banks."""

    local_q = derived(lambda tile: tile.depth4 * tile.pitch_q)
    local_kv = derived(lambda tile: max(tile.depth4 * (tile.keys + 1), tile.keys * tile.columns4))
    """Vectors of keys, one more a row, against conflicts of banks; or of values, which need none."""

    local_weight = derived(lambda tile: tile.tile_rows * (tile.keys // 4 + 1))
    local_meeting = derived(lambda tile: tile.tile_rows * _ACROSS)
    """The largest score of each work-item of a row, or their sums."""

    out = derived(lambda tile: -(-tile.columns4 // _ACROSS))
    """Vectors of the result that a work-item has of each of its rows."""

    sums = derived(lambda tile: tile.each * tile.out)
    scores = derived(lambda tile: tile.halves * tile.each)

    @property
    def local_bytes(self) -> int:
        return 16 * (self.local_q + self.local_kv + self.local_weight) + 4 * self.local_meeting


@dataclass(frozen=True)
class CachedTile(AttentionTile):
    """Keys and values are a cache's; vectors of half of what is turned of a row of q. There are fewer rows than keys
    of a turn, so that each row sees one of the first."""

    half4: int = 0

    cached = derived(lambda _: 1)


KERNEL = Kernel(
    "attention",
    body("attention"),
    (Buffer("q"), Buffer("k"), Buffer("v"), result("dst")),
    ("rows", "keys", *PLACES),
    ("scale",),
    tile=AttentionTile,
    locals=(
        LocalArray("tile_q", "LOCAL_Q"),
        LocalArray("tile", "LOCAL_KV"),
        LocalArray("weight", "LOCAL_WEIGHT"),
        LocalArray("meeting", "LOCAL_MEETING", 1),
    ),
)
CACHED_KERNEL = of_a_cache(KERNEL, "attend_rows", CachedTile)
_FEW = 8
"""Rows for which a work-group each takes no more time than a tile of them."""


def cached_tile(context: GpuContext, node: Node) -> tuple[Kernel, CachedTile | CachedRegisterTile] | None:
    """Return the kernel and tile of rows that attend to a cache; None: they are few, or long."""
    a, (batch, _, _, depth) = node.attributes, context.graph.shapes[node.inputs[1]]
    if a["rows"] < _FEW:
        return None
    sizes, columns, half4 = (batch, a["heads"], a["rows"]), context.graph.shapes[node.inputs[2]][3], a["turned"] // 8
    in_registers = register_tile(sizes, depth, columns, (), context.options, context.limits)
    if in_registers is not None:
        return CACHED_REGISTER_KERNEL, CachedRegisterTile(**vars(in_registers), half4=half4)
    tile = _tile(context, sizes, depth, columns)
    return (CACHED_KERNEL, CachedTile(**vars(tile), half4=half4)) if _fits(context.limits, tile) else None


def lower_attention(context: GpuContext, node: Node) -> None:
    """See `kernels/passes/rows/fuse_attention.py`."""
    batch, heads, rows, keys, depth, columns = node.attributes["sizes"]
    ints = {"rows": rows, "keys": keys}
    for name, word in (("q", "q"), ("k", "k"), ("v", "v"), ("dst", "out")):
        parts = zip(("start", "batch", "head", "row"), node.attributes[word], strict=True)
        ints |= {f"{name}_{part}": number // 4 for part, number in parts}
    kernel, tile = _kernel(context, node)
    buffers = {name: plain(context, tensor) for name, tensor in zip("qkv", node.inputs, strict=False)}
    bias, places, factors = (*node.inputs[3:], "", "", "")[:3]
    if bias:
        buffers["bias"] = plain(context, bias)
        ints |= {"heads": heads, "bias_batches": context.graph.shapes[bias][0]}
    if places:
        buffers["places"] = single(context, places)
        ints |= {"windows": node.attributes["windows"]}
    floats = {"scale": node.attributes["scale"]}
    if factors:
        buffers["factors"] = single(context, factors)
        floats |= {"least": node.attributes["least"]}
    given = {"biased": bool(bias), "listed": bool(places), "cosine": bool(factors)}
    context.dispatch(
        _extended(kernel, **given), node.name, {**buffers, "dst": context.new_plain(node.output)},
        ints, (-(-rows // tile.tile_rows) * tile.group, heads, batch), floats=floats, tile=tile,
        switches={word.upper(): 1 for word, is_given in given.items() if is_given}, group=tile.group,
        flops=2 * batch * heads * rows * keys * (depth + columns), traffic=context.traffic(node),
    )  # fmt: skip


def _extended(kernel: Kernel, *, biased: bool, listed: bool, cosine: bool) -> Kernel:
    """The kernel with what it reads beside q, k and v."""
    *read, written = kernel.buffers
    read += [Buffer("bias")] * biased + [Buffer("places", 1, "f32")] * listed + [Buffer("factors", 1, "f32")] * cosine
    ints = (*kernel.ints, *("heads", "bias_batches") * biased, *("windows",) * listed)
    name = f"{kernel.name}{'_biased' * biased}{'_listed' * listed}{'_cosine' * cosine}"
    floats = (*kernel.floats, *("least",) * cosine)
    return replace(kernel, name=name, buffers=(*read, written), ints=ints, floats=floats)


def _kernel(context: GpuContext, node: Node) -> tuple[Kernel, AttentionTile | RegisterAttentionTile]:
    *sizes, _, depth, columns = node.attributes["sizes"]
    steps = [number for word in "qkv" for number in node.attributes[word]]
    in_registers = register_tile(sizes, depth, columns, steps, context.options, context.limits)
    if in_registers is not None and len(node.inputs) == 3:
        return REGISTER_KERNEL, in_registers
    return KERNEL, _tile(context, sizes, depth, columns)


def _tile(context: GpuContext, sizes: Sequence[int], depth: int, columns: int) -> AttentionTile:
    """Return a large tile where those of all heads of a batch fill the device; else a small one, with fewer keys a
    turn where local memory has no room for more."""
    (batch, heads, rows), limits, short = sizes, context.limits, (depth // 4, columns // 4)
    large = AttentionTile(*_large(rows, columns, context.options), *short, _STEPS if depth % (4 * _STEPS) == 0 else 1)
    small = AttentionTile(*_SMALL, *short)
    busy = batch * heads * -(-rows // large.tile_rows) >= 2 * (limits.compute_units or _UNITS)
    if busy and _fits(limits, large) and limits.local_bytes and not limits.unified_memory:
        return large
    return small if _fits(limits, small) else replace(small, halves=1)


def _fits(limits: Limits, tile: AttentionTile) -> bool:
    return group_conflict(limits, group=tile.group, local_bytes=tile.local_bytes) is None


def _large(rows: int, columns: int, options: Options) -> tuple[int, int]:
    """Choose the large tile that computes the fewest rows in vain; more rows fit where they are short."""
    fits = columns <= 32
    if options.backend == "vulkan":
        return _NARROW if fits and rows <= _NARROW[0] * _NARROW[1] else _VULKAN
    tiles = (*_LARGE, _NARROW) if fits else _LARGE
    return min(tiles, key=lambda tile: -(-rows // (tile[0] * tile[1])) * tile[0] * tile[1])
