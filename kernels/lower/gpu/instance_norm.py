"""Normalisation of channels, or groups of them, in several steps, so that a large image keeps a whole GPU busy.

Chunks of the pixels give their means and squares, then every pixel is normalised. A step between puts the means and
squares of a group together, where they are too many to be put together by each that needs them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernels.catalog.packing import padded
from kernels.ir.graph import Node
from kernels.lower.activation import activation_scalars
from kernels.plan.model import Tensor
from kernels.source.kernel import Buffer, Kernel, LocalArray, result, view
from kernels.source.tile import UNTILED, SharedSum, Tile, derived

from .bodies import body
from .context import GpuContext
from .convolution import constant
from .layout import packed

CHUNK_PIXELS = 4096
"""Pixels of one chunk; their fp32 sum loses little."""
MOST_CHUNKS = 128
"""Chunks of a channel, each of which a work-group adds up."""
_FEW_CHUNKS, _FEWEST_SHARING, _MOST_PARTS = 4, 32, 1024
"""Chunks that a work-item puts together, and a work-group's items and the parts of a sum for which it does."""


@dataclass(frozen=True)
class AloneTile(Tile):
    """Each channel is a group."""

    alone = derived(lambda _: 1)


@dataclass(frozen=True)
class JoinedTile(SharedSum):
    """A work-group puts the statistics of its group of channels together."""

    joined = derived(lambda _: 1)


_STATISTICS = Kernel(
    "instance_statistics",
    body("instance_statistics"),
    (Buffer("src"), result("sums", storage="f32")),
    (*view("src"), "stacks", "hw", "span", "chunks"),
    tile=SharedSum,
    locals=(LocalArray("partial", "SHARED"),),
)
_FACTORS = Kernel(
    "group_factors",
    body("group_factors"),
    (Buffer("sums", 1, "f32"), Buffer("scale", 1), result("factors", 1, "f32")),
    ("stacks", "groups", "channels", "hw", "span", "chunks"),
    ("epsilon",),
    tile=SharedSum,
    locals=(LocalArray("partial", "SHARED", 1),),
)
_NORMALISE = Kernel(
    "instance_normalise",
    body("instance_normalise"),
    (Buffer("src"), Buffer("factors", storage="f32"), Buffer("shift"), result("dst")),
    (*view("src"), *view("dst"), "stacks", "hw", "activation"),
    ("lo", "hi"),
)
_ALONE = replace(
    _NORMALISE,
    name="instance_normalise_alone",
    buffers=(Buffer("src"), Buffer("sums", storage="f32"), Buffer("scale"), *_NORMALISE.buffers[2:]),
    ints=(*_NORMALISE.ints, "span", "chunks"),
    floats=("epsilon", *_NORMALISE.floats),
    tile=AloneTile,
)
_JOINED = replace(
    _ALONE,
    name="instance_normalise_joined",
    buffers=(Buffer("src"), Buffer("sums", 1, "f32"), *_ALONE.buffers[2:]),
    ints=(*_ALONE.ints, "channels"),
    tile=JoinedTile,
    locals=_FACTORS.locals,
)


def lower_instance_norm(context: GpuContext, node: Node) -> None:
    source, dims = packed(context, node.inputs[0]), context.dims(node.output)
    group = context.sharing(_STATISTICS, min(dims.hw, CHUNK_PIXELS)) or 1
    pixels = max(CHUNK_PIXELS, -(-dims.hw // MOST_CHUNKS)) if group > 1 else CHUNK_PIXELS
    chunks = -(-dims.hw // pixels)
    span = -(-dims.hw // chunks)
    common = {"stacks": dims.stacks, "hw": dims.hw}
    sums = _scratch(context, node, "sums", chunks)
    chunked = {**common, "span": span, "chunks": chunks}
    context.dispatch(
        _STATISTICS, node.name, {"src": source, "sums": sums}, {**source.ints("src"), **chunked},
        (chunks * group, dims.stacks, dims.n), tile=SharedSum(1, group), group=group,
        flops=4 * dims.n * dims.c * dims.hw, traffic=context.traffic(node) // 2,
    )  # fmt: skip
    scale, shift = (context.weight(node.inputs[i], padded(constant(context, node, i), 0, 4)) for i in (1, 2))
    groups = node.attributes.get("groups", dims.c)
    channels, floats = dims.c // groups, {"epsilon": node.attributes["epsilon"]}
    tile: Tile = UNTILED
    kernel, read, group = _NORMALISE, {"sums": sums, "scale": scale}, 0
    if channels == 1 and chunks <= _FEW_CHUNKS:
        kernel, tile = _ALONE, AloneTile()
    elif (groups == 1 or channels % 4 == 0) and channels * chunks <= _MOST_PARTS:
        group = context.sharing(_JOINED, channels * chunks)
    if group >= _FEWEST_SHARING:
        kernel, tile = _JOINED, JoinedTile(1, group)
        chunked |= {"channels": channels}
    elif kernel is _NORMALISE:
        factors = _scratch(context, node, "factors", 1)
        ints = {**chunked, "groups": groups, "channels": channels}
        own = context.sharing(_FACTORS, channels * chunks) or 1
        context.dispatch(
            _FACTORS, node.name, {**read, "factors": factors}, ints, (groups * own, 1, dims.n), floats=floats,
            tile=SharedSum(1, own), group=own,
        )  # fmt: skip
        read, chunked, floats, group = {"factors": factors}, common, {}, 0
    target = context.new_packed(node.output, over=node.inputs[:1])
    code, lo, hi = activation_scalars(node)
    context.dispatch(
        kernel, node.name, {"src": source, **read, "shift": shift, "dst": target},
        {**source.ints("src"), **target.ints("dst"), **chunked, "activation": code},
        (-(-dims.hw // group) * group if group else dims.hw, dims.stacks, dims.n),
        floats={**floats, "lo": lo, "hi": hi}, tile=tile, group=group,
        flops=3 * dims.n * dims.c * dims.hw, traffic=context.traffic(node),
    )  # fmt: skip


def _scratch(context: GpuContext, node: Node, name: str, chunks: int) -> str:
    """Two fp32 vectors for each chunk of each stack."""
    dims = context.dims(node.output)
    shape = (dims.n, dims.stacks, chunks, 2, 4)
    size = dims.n * dims.stacks * chunks * 32
    return context.draft.add_buffer(f"{node.name}:{name}", size, "scratch", Tensor(shape=shape, dtype="f32"))
