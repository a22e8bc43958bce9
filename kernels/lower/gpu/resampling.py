"""Padding and resizing."""

from __future__ import annotations

from kernels.graph import Node
from kernels.resampling import PAD_MODES, ratio

from .context import GpuContext
from .layout import packed


def lower_pad(context: GpuContext, node: Node) -> None:
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    inner, outer, a = context.dims(node.inputs[0]), context.dims(node.output), node.attributes
    context.dispatch(
        "pad", node.name, {"src": source.buffer, "dst": target.buffer},
        {
            **source.ints("src"), **target.ints("dst"), "h": inner.h, "w": inner.w, "oh": outer.h, "ow": outer.w,
            "pad_t": a["pads"][0], "pad_l": a["pads"][1], "mode": PAD_MODES[a["mode"]],
        },
        (outer.hw, outer.stacks, outer.n), floats={"value": float(a["value"])}, traffic=context.traffic(node),
    )  # fmt: skip


def lower_resize(context: GpuContext, node: Node) -> None:
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    inner, outer, a = context.dims(node.inputs[0]), context.dims(node.output), node.attributes
    y, x = (ratio(a["mode"], a["coordinates"], *ends) for ends in ((inner.h, outer.h), (inner.w, outer.w)))
    context.dispatch(
        "resize", node.name, {"src": source.buffer, "dst": target.buffer},
        {
            **source.ints("src"), **target.ints("dst"), "h": inner.h, "w": inner.w, "oh": outer.h, "ow": outer.w,
            "step_y": y.step, "start_y": y.start, "divisor_y": y.divisor,
            "step_x": x.step, "start_x": x.start, "divisor_x": x.divisor, "linear": int(a["mode"] == "linear"),
        },
        (outer.hw, outer.stacks, outer.n), flops=8 * outer.n * outer.c * outer.hw, traffic=context.traffic(node),
    )  # fmt: skip
