"""Pools, softmax and local response normalisation."""

from __future__ import annotations

from math import prod

from kernels.ir.dims import has_channels
from kernels.ir.graph import Node
from kernels.source.kernel import Buffer, Kernel, LocalArray, result, view
from kernels.source.tile import SharedSum

from .bodies import body
from .context import GpuContext
from .layout import packed, plain

_FEW_PIXELS = 4096
"""The number of pixels beyond which one work-item each keeps a GPU busy."""
_SHARED_ROW = 64
"""The number of adjacent elements from which on a work-group shares out a row."""

_PAIR = (Buffer("src"), result("dst"))
_VIEWS = (*view("src"), *view("dst"))
_PARTIAL = (LocalArray("partial", "SHARED"),)
_POOL = Kernel(
    "pool",
    body("pool"),
    _PAIR,
    (*_VIEWS, "h", "w", "oh", "ow", "kh", "kw", "sh", "sw", "pad_t", "pad_l", "pad_b", "pad_r", "mode"),
)
_AVERAGE = Kernel("global_average_pool", body("global_average_pool"), _PAIR, (*_VIEWS, "hw", "stacks"))
_AVERAGE_GROUP = Kernel(
    "global_average_group",
    body("global_average_group"),
    _PAIR,
    (*_VIEWS, "hw"),
    tile=SharedSum,
    locals=_PARTIAL,
)
_SOFTMAX = Kernel("softmax_channels", body("softmax_channels"), _PAIR, (*_VIEWS, "channels", "hw"))
_SOFTMAX_GROUP = Kernel("softmax_group", body("softmax_group"), _PAIR, _SOFTMAX.ints, tile=SharedSum, locals=_PARTIAL)
_SOFTMAX_PLAIN = Kernel(
    "softmax_plain", body("softmax_plain"), (Buffer("src", 1), result("dst", 1)), ("axis", "inner", "count")
)
_SOFTMAX_ROWS = Kernel(
    "softmax_rows",
    body("softmax_rows"),
    (Buffer("src", 1), result("dst", 1)),
    ("axis",),
    tile=SharedSum,
    locals=(LocalArray("partial", "SHARED", 1),),
)
_LRN = Kernel("lrn", body("lrn"), _PAIR, (*_VIEWS, "channels", "hw", "size"), ("alpha", "beta", "bias"))


def lower_pool(context: GpuContext, node: Node) -> None:
    """max_pool and average_pool."""
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    inner, outer, a = context.dims(node.inputs[0]), context.dims(node.output), node.attributes
    (kh, kw), (sh, sw) = a["kernel"], a.get("strides", (1, 1))
    top, left, bottom, right = a.get("pads", (0, 0, 0, 0))
    mode = 0 if node.op == "max_pool" else 2 if a.get("count_include_pad", 0) else 1
    context.dispatch(
        _POOL, node.name, {"src": source, "dst": target},
        {
            **source.ints("src"), **target.ints("dst"), "h": inner.h, "w": inner.w, "oh": outer.h, "ow": outer.w,
            "kh": kh, "kw": kw, "sh": sh, "sw": sw, "pad_t": top, "pad_l": left, "pad_b": bottom, "pad_r": right,
            "mode": mode,
        },
        (outer.hw, outer.stacks, outer.n),
        flops=outer.n * outer.c * outer.hw * kh * kw, traffic=context.traffic(node),
    )  # fmt: skip


def lower_global_average_pool(context: GpuContext, node: Node) -> None:
    """Mean over the pixels."""
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    dims = context.dims(node.inputs[0])
    if group := context.sharing(_AVERAGE_GROUP, dims.hw):
        context.dispatch(
            _AVERAGE_GROUP, node.name, {"src": source, "dst": target},
            {**source.ints("src"), **target.ints("dst"), "hw": dims.hw}, (group, dims.stacks, dims.n),
            tile=SharedSum(1, group), group=group,
            flops=dims.n * dims.c * dims.hw, traffic=context.traffic(node),
        )  # fmt: skip
        return
    context.dispatch(
        _AVERAGE, node.name, {"src": source, "dst": target},
        {**source.ints("src"), **target.ints("dst"), "hw": dims.hw, "stacks": dims.stacks}, (dims.stacks, 1, dims.n),
        flops=dims.n * dims.c * dims.hw, traffic=context.traffic(node),
    )  # fmt: skip


def lower_softmax(context: GpuContext, node: Node) -> None:
    """Lower a softmax over the channels of stacks, or over any axis of a row-major array."""
    shape, axis = context.graph.shapes[node.inputs[0]], node.attributes["axis"]
    flops, traffic = 4 * prod(shape), context.traffic(node)
    if axis == 1 and has_channels(shape):
        source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
        dims = context.dims(node.inputs[0])
        ints = {**source.ints("src"), **target.ints("dst"), "channels": dims.c, "hw": dims.hw}
        views = {"src": source, "dst": target}
        if group := context.sharing(_SOFTMAX_GROUP, dims.stacks) if dims.hw * dims.n <= _FEW_PIXELS else 0:
            context.dispatch(
                _SOFTMAX_GROUP, node.name, views, ints, (group, dims.hw, dims.n),
                tile=SharedSum(1, group), group=group, flops=flops, traffic=traffic,
            )  # fmt: skip
            return
        items = (dims.hw, 1, dims.n)
        context.dispatch(_SOFTMAX, node.name, views, ints, items, flops=flops, traffic=traffic)
        return
    arrays = {"src": plain(context, node.inputs[0]), "dst": context.new_plain(node.output)}
    count = prod(shape) // shape[axis]
    is_shared = axis == len(shape) - 1 and shape[axis] >= _SHARED_ROW
    if group := context.sharing(_SOFTMAX_ROWS, shape[axis]) if is_shared else 0:
        context.dispatch(
            _SOFTMAX_ROWS, node.name, arrays, {"axis": shape[axis]}, (count * group, 1, 1),
            tile=SharedSum(1, group), group=group, flops=flops, traffic=traffic,
        )  # fmt: skip
        return
    ints = {"axis": shape[axis], "inner": prod(shape[axis + 1 :]), "count": count}
    context.dispatch(_SOFTMAX_PLAIN, node.name, arrays, ints, (count, 1, 1), flops=flops, traffic=traffic)


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
