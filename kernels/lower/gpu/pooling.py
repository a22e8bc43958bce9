"""Pools, softmax and local response normalisation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from math import prod

from kernels.ir.dims import has_channels
from kernels.ir.expressions import LETTERS, program_of
from kernels.ir.graph import Node
from kernels.ir.strides import along_channels
from kernels.source.kernel import Buffer, Kernel, LocalArray, result, view
from kernels.source.tile import UNTILED, SharedSum, Tile

from .bodies import body
from .context import GpuContext
from .expression_text import in_halves
from .layout import packed, plain
from .maps import stack_text, stacked_operands, trimmed, used_ints
from .values import View

_FEW_PIXELS = 4096
"""The number of pixels, or of rows that lie apart, beyond which one work-item each keeps a GPU busy."""
_SHARED_ROW = 64
"""The number of elements from which on a work-group shares out a row."""

_PAIR = (Buffer("src"), result("dst"))
_VIEWS = (*view("src"), *view("dst"))
_POOL = Kernel(
    "pool",
    body("pool"),
    _PAIR,
    (*_VIEWS, "h", "w", "oh", "ow", "kh", "kw", "sh", "sw", "pad_t", "pad_l", "pad_b", "pad_r", "mode"),
)
_AVERAGE = Kernel("global_average_pool", body("global_average_pool"), _PAIR, (*_VIEWS, "hw", "stacks"))
_SOFTMAX = Kernel("softmax_channels", body("softmax_channels"), _PAIR, (*_VIEWS, "channels", "hw"))
_PLAIN = Kernel(
    "softmax_plain", body("softmax_plain"), (Buffer("src", 1), result("dst", 1)), ("axis", "inner", "count")
)


def _shared(kernel: Kernel, name: str) -> Kernel:
    """Return the kernel of which a work-group shares out what a work-item does."""
    lanes = kernel.buffers[0].lanes
    return replace(kernel, name=name, tile=SharedSum, locals=(LocalArray("partial", "SHARED", lanes),))


_AVERAGE_GROUP = _shared(_AVERAGE, "global_average_group")
_SOFTMAX_GROUP = _shared(_SOFTMAX, "softmax_group")
_ROWS = _shared(_PLAIN, "softmax_rows")
_LRN = Kernel("lrn", body("lrn"), _PAIR, (*_VIEWS, "channels", "hw", "size"), ("alpha", "beta", "bias"))


def lower_pool(context: GpuContext, node: Node) -> None:
    """Lower max_pool and average_pool, each with what it ends in (`kernels/passes/functions/end_pools.py`)."""
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    inner, outer, a = context.dims(node.inputs[0]), context.dims(node.output), node.attributes
    (kh, kw), (sh, sw) = a["kernel"], a.get("strides", (1, 1))
    top, left, bottom, right = a.get("pads", (0, 0, 0, 0))
    mode = 0 if node.op == "max_pool" else 2 if a.get("count_include_pad", 0) else 1
    kernel, views, ints = _ended(context, node) if "ending" in a else (_POOL, {}, {})
    context.dispatch(
        kernel, node.name, {"src": source, **views, "dst": target},
        {
            **source.ints("src"), **target.ints("dst"), "h": inner.h, "w": inner.w, "oh": outer.h, "ow": outer.w,
            "kh": kh, "kw": kw, "sh": sh, "sw": sw, "pad_t": top, "pad_l": left, "pad_b": bottom, "pad_r": right,
            "mode": mode, **ints,
        },
        (outer.hw, outer.stacks, outer.n), switches=trimmed(outer) if views else {},
        flops=outer.n * outer.c * outer.hw * kh * kw, traffic=context.traffic(node),
    )  # fmt: skip


def _ended(context: GpuContext, node: Node) -> tuple[Kernel, dict[str, View], dict[str, int]]:
    """Return the kernel that computes an expression of what it pools, the other operands, their integers."""
    ending, shape, names = node.attributes["ending"], context.graph.shapes[node.output], node.inputs[1:]
    program = program_of(in_halves(ending) if context.half else ending)
    constants, shapes = context.graph.constants, context.graph.shapes
    kinds = [along_channels(shapes[name], shape, constant=name in constants) for name in names]
    views = dict(zip(LETTERS[1:], stacked_operands(context, node, names, kinds).values(), strict=False))
    text = stack_text(program, dict(zip(LETTERS[1:], kinds, strict=False)), {"a": "pooled"})
    ints = used_ints(views, text)

    def write(template: str, _: Mapping[str, int]) -> str:
        places = "const int hw = oh * ow;\n    const int i = stack * hw + pixel;\n    "
        return template.replace("const FLOAT4 found = pooled;", places + text)

    name = f"pool_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    buffers = (_POOL.buffers[0], *map(Buffer, views), _POOL.buffers[1])
    return replace(_POOL, name=name, buffers=buffers, ints=(*_POOL.ints, *ints), rewrite=write), views, ints


def lower_global_average_pool(context: GpuContext, node: Node) -> None:
    """Mean over the pixels."""
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    dims = context.dims(node.inputs[0])
    group = context.sharing(_AVERAGE_GROUP, dims.hw)
    kernel, items = (_AVERAGE_GROUP, (group, dims.stacks)) if group else (_AVERAGE, (dims.stacks, 1))
    context.dispatch(
        kernel, node.name, {"src": source, "dst": target},
        {**source.ints("src"), **target.ints("dst"), "hw": dims.hw, "stacks": dims.stacks}, (*items, dims.n),
        tile=_tile(group), group=group, flops=dims.n * dims.c * dims.hw, traffic=context.traffic(node),
    )  # fmt: skip


def lower_softmax(context: GpuContext, node: Node) -> None:
    """Lower a softmax over the channels of stacks, or over any axis of a row-major array."""
    shape, axis = context.graph.shapes[node.inputs[0]], node.attributes["axis"]
    buffers: dict[str, str | View]
    if axis == 1 and has_channels(shape):
        source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
        dims = context.dims(node.inputs[0])
        group = context.sharing(_SOFTMAX_GROUP, dims.stacks) if dims.hw * dims.n <= _FEW_PIXELS else 0
        kernel, items = (_SOFTMAX_GROUP, (group, dims.hw, dims.n)) if group else (_SOFTMAX, (dims.hw, 1, dims.n))
        buffers, ints = {"src": source, "dst": target}, {"channels": dims.c, "hw": dims.hw}
        ints |= {**source.ints("src"), **target.ints("dst")}
    else:
        buffers = {"src": plain(context, node.inputs[0]), "dst": context.new_plain(node.output)}
        count = prod(shape) // shape[axis]
        is_shared = shape[axis] >= _SHARED_ROW and (axis == len(shape) - 1 or count <= _FEW_PIXELS)
        group = context.sharing(_ROWS, shape[axis]) if is_shared else 0
        kernel, items = (_ROWS, (count * group, 1, 1)) if group else (_PLAIN, (count, 1, 1))
        ints = {"axis": shape[axis], "inner": prod(shape[axis + 1 :]), "count": count}
    context.dispatch(
        kernel, node.name, buffers, ints, items, tile=_tile(group), group=group, flops=4 * prod(shape),
        traffic=context.traffic(node),
    )  # fmt: skip


def _tile(group: int) -> Tile:
    return SharedSum(1, group) if group else UNTILED


def lower_lrn(context: GpuContext, node: Node) -> None:
    """Lower the normalisation across channels."""
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    dims = context.dims(node.inputs[0])
    a = node.attributes
    context.dispatch(
        _LRN, node.name, {"src": source, "dst": target},
        {**source.ints("src"), **target.ints("dst"), "channels": dims.c, "hw": dims.hw, "size": int(a["size"])},
        (dims.hw, dims.stacks, dims.n),
        floats={name: float(a[name]) for name in ("alpha", "beta", "bias")},
        flops=dims.n * dims.c * dims.hw * (2 * int(a["size"]) + 4), traffic=context.traffic(node),
    )  # fmt: skip
