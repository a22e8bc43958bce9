"""Pools, softmax and local response normalisation."""

from __future__ import annotations

from math import prod

from kernels.ir.graph import Node

from .context import GpuContext
from .layout import packed, plain
from .values import has_channels

_FEW_PIXELS = 4096
"""With more pixels than this, one work-item each keeps a GPU busy."""


def lower_pool(context: GpuContext, node: Node) -> None:
    """max_pool and average_pool."""
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    inner, outer, a = context.dims(node.inputs[0]), context.dims(node.output), node.attributes
    (kh, kw), (sh, sw) = a["kernel"], a.get("strides", (1, 1))
    top, left, bottom, right = a.get("pads", (0, 0, 0, 0))
    mode = 0 if node.op == "max_pool" else 2 if a.get("count_include_pad", 0) else 1
    context.dispatch(
        "pool", node.name, {"src": source, "dst": target},
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
    if group := context.sharing("global_average_group", dims.hw):
        context.dispatch(
            "global_average_group", node.name, {"src": source, "dst": target},
            {**source.ints("src"), **target.ints("dst"), "hw": dims.hw}, (group, dims.stacks, dims.n),
            tunables={"CX": 1, "KY": group}, group=group,
            flops=dims.n * dims.c * dims.hw, traffic=context.traffic(node),
        )  # fmt: skip
        return
    context.dispatch(
        "global_average_pool", node.name, {"src": source, "dst": target},
        {**source.ints("src"), **target.ints("dst"), "hw": dims.hw, "stacks": dims.stacks}, (dims.stacks, 1, dims.n),
        flops=dims.n * dims.c * dims.hw, traffic=context.traffic(node),
    )  # fmt: skip


def lower_softmax(context: GpuContext, node: Node) -> None:
    """Over the channels of stacks, or over any axis of a row-major array."""
    shape, axis = context.graph.shapes[node.inputs[0]], node.attributes["axis"]
    flops, traffic = 4 * prod(shape), context.traffic(node)
    if axis == 1 and has_channels(shape):
        source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
        dims = context.dims(node.inputs[0])
        ints = {**source.ints("src"), **target.ints("dst"), "channels": dims.c, "hw": dims.hw}
        views = {"src": source, "dst": target}
        if group := context.sharing("softmax_group", dims.stacks) if dims.hw * dims.n <= _FEW_PIXELS else 0:
            context.dispatch(
                "softmax_group", node.name, views, ints, (group, dims.hw, dims.n),
                tunables={"CX": 1, "KY": group}, group=group, flops=flops, traffic=traffic,
            )  # fmt: skip
            return
        items = (dims.hw, 1, dims.n)
        context.dispatch("softmax_channels", node.name, views, ints, items, flops=flops, traffic=traffic)
        return
    arrays = {"src": plain(context, node.inputs[0]), "dst": context.new_plain(node.output)}
    count = prod(shape) // shape[axis]
    ints = {"axis": shape[axis], "inner": prod(shape[axis + 1 :]), "count": count}
    context.dispatch("softmax_plain", node.name, arrays, ints, (count, 1, 1), flops=flops, traffic=traffic)


def lower_lrn(context: GpuContext, node: Node) -> None:
    """Across channels."""
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    dims = context.dims(node.inputs[0])
    a = node.attributes
    context.dispatch(
        "lrn", node.name, {"src": source, "dst": target},
        {**source.ints("src"), **target.ints("dst"), "channels": dims.c, "hw": dims.hw, "size": int(a["size"])},
        (dims.hw, dims.stacks, dims.n),
        floats={name: float(a[name]) for name in ("alpha", "beta", "bias")},
        flops=dims.n * dims.c * dims.hw * (2 * int(a["size"]) + 4), traffic=context.traffic(node),
    )  # fmt: skip
