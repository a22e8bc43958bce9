"""Normalisation of channels, or groups of them, in three steps, so that a large image keeps a whole GPU busy.

Chunks of the pixels give their means and squares, these are put together per group, then every pixel is normalised.
"""

from __future__ import annotations

from kernels.catalog.packing import padded
from kernels.ir.graph import Node
from kernels.lower.activation import activation_scalars
from kernels.plan.model import Tensor
from kernels.source.kernel import Buffer, Kernel, LocalArray, result, view
from kernels.source.tile import SharedSum

from .bodies import body
from .context import GpuContext
from .convolution import constant
from .layout import packed

CHUNK_PIXELS = 4096
"""Pixels of one chunk; their fp32 sum loses little."""
MOST_CHUNKS = 128
"""Chunks of a channel, each of which a work-group adds up."""

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


def lower_instance_norm(context: GpuContext, node: Node) -> None:
    source, dims = packed(context, node.inputs[0]), context.dims(node.output)
    group = context.sharing(_STATISTICS, min(dims.hw, CHUNK_PIXELS)) or 1
    pixels = max(CHUNK_PIXELS, -(-dims.hw // MOST_CHUNKS)) if group > 1 else CHUNK_PIXELS
    chunks = -(-dims.hw // pixels)
    span = -(-dims.hw // chunks)
    common = {"stacks": dims.stacks, "hw": dims.hw}
    sums, factors = (_scratch(context, node, name, count) for name, count in (("sums", chunks), ("factors", 1)))
    context.dispatch(
        _STATISTICS, node.name, {"src": source, "sums": sums},
        {**source.ints("src"), **common, "span": span, "chunks": chunks}, (chunks * group, dims.stacks, dims.n),
        tile=SharedSum(1, group), group=group,
        flops=4 * dims.n * dims.c * dims.hw, traffic=context.traffic(node) // 2,
    )  # fmt: skip
    scale, shift = (context.weight(node.inputs[i], padded(constant(context, node, i), 0, 4)) for i in (1, 2))
    groups = node.attributes.get("groups", dims.c)
    ints = {**common, "groups": groups, "channels": dims.c // groups, "span": span, "chunks": chunks}
    group = context.sharing(_FACTORS, ints["channels"] * chunks) or 1
    context.dispatch(
        _FACTORS, node.name, {"sums": sums, "scale": scale, "factors": factors}, ints, (groups * group, 1, dims.n),
        floats={"epsilon": node.attributes["epsilon"]}, tile=SharedSum(1, group), group=group,
    )  # fmt: skip
    target = context.new_packed(node.output, over=node.inputs[:1])
    code, lo, hi = activation_scalars(node)
    context.dispatch(
        _NORMALISE, node.name,
        {"src": source, "factors": factors, "shift": shift, "dst": target},
        {**source.ints("src"), **target.ints("dst"), **common, "activation": code}, (dims.hw, dims.stacks, dims.n),
        floats={"lo": lo, "hi": hi}, flops=3 * dims.n * dims.c * dims.hw, traffic=context.traffic(node),
    )  # fmt: skip


def _scratch(context: GpuContext, node: Node, name: str, chunks: int) -> str:
    """Two fp32 vectors for each chunk of each stack."""
    dims = context.dims(node.output)
    shape = (dims.n, dims.stacks, chunks, 2, 4)
    size = dims.n * dims.stacks * chunks * 32
    return context.draft.add_buffer(f"{node.name}:{name}", size, "scratch", Tensor(shape=shape, dtype="f32"))
