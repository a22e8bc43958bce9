"""Padding, resizing, and boxes brought to one size."""

from __future__ import annotations

from math import isfinite

from kernels.ir.dims import Dims
from kernels.ir.graph import Node
from kernels.ir.resampling import PAD_MODES, ratio
from kernels.source.kernel import Buffer, Kernel, result, view

from .bodies import body
from .context import GpuContext
from .layout import packed, single

_PAIR = (Buffer("src"), result("dst"))
_PLACES = (*view("src"), *view("dst"), "h", "w", "oh", "ow")
_PAD = Kernel("pad", body("pad"), _PAIR, (*_PLACES, "pad_t", "pad_l", "mode"), ("value",))
_RESIZE = Kernel(
    "resize",
    body("resize"),
    _PAIR,
    (*_PLACES, "step_y", "start_y", "divisor_y", "step_x", "start_x", "divisor_x", "linear"),
)
_ROI_ALIGN = Kernel(
    "roi_align",
    body("roi_align"),
    (Buffer("src"), Buffer("boxes", 1, "f32"), Buffer("pictures", 1, "f32"), Buffer("valid", 1, "f32"), result("dst")),
    (*_PLACES, "n", "stacks", "points", "count"),
    ("scale", "shift"),
)


def lower_pad(context: GpuContext, node: Node) -> None:
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    inner, outer, a = context.dims(node.inputs[0]), context.dims(node.output), node.attributes
    context.dispatch(
        _PAD, node.name, {"src": source, "dst": target},
        {
            **source.ints("src"), **target.ints("dst"), "h": inner.h, "w": inner.w, "oh": outer.h, "ow": outer.w,
            "pad_t": a["pads"][0], "pad_l": a["pads"][1], "mode": PAD_MODES[a["mode"]],
        },
        (outer.hw, outer.stacks, outer.n), floats={"value": float(a["value"])}, traffic=context.traffic(node),
        switches=_last_lanes(outer, float(a["value"])),
    )  # fmt: skip


def _last_lanes(outer: Dims, value: float) -> dict[str, int]:
    """Set lanes beyond the last channel to zero where they would become infinite: zero weights make them NaN."""
    lanes = outer.c % 4
    return {} if isfinite(value) or not lanes else {"LAST_LANES": lanes, "LAST_STACK": outer.stacks - 1}


def lower_resize(context: GpuContext, node: Node) -> None:
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    inner, outer, a = context.dims(node.inputs[0]), context.dims(node.output), node.attributes
    y, x = (ratio(a["mode"], a["coordinates"], *ends) for ends in ((inner.h, outer.h), (inner.w, outer.w)))
    context.dispatch(
        _RESIZE, node.name, {"src": source, "dst": target},
        {
            **source.ints("src"), **target.ints("dst"), "h": inner.h, "w": inner.w, "oh": outer.h, "ow": outer.w,
            "step_y": y.step, "start_y": y.start, "divisor_y": y.divisor,
            "step_x": x.step, "start_x": x.start, "divisor_x": x.divisor, "linear": int(a["mode"] == "linear"),
        },
        (outer.hw, outer.stacks, outer.n), flops=8 * outer.n * outer.c * outer.hw, traffic=context.traffic(node),
    )  # fmt: skip


def lower_roi_align(context: GpuContext, node: Node) -> None:
    """Each stack of an element by itself, so that no buffer holds the points; boxes in fp32 in every plan."""
    source, (boxes, pictures, valid) = packed(context, node.inputs[0]), (single(context, x) for x in node.inputs[1:])
    target, a = context.new_packed(node.output), node.attributes
    inner, outer = context.dims(node.inputs[0]), context.dims(node.output)
    count = outer.n * outer.stacks * outer.hw
    context.dispatch(
        _ROI_ALIGN, node.name,
        {"src": source, "boxes": boxes, "pictures": pictures, "valid": valid, "dst": target},
        {
            **source.ints("src"), **target.ints("dst"), "h": inner.h, "w": inner.w, "oh": outer.h, "ow": outer.w,
            "n": inner.n, "stacks": outer.stacks, "points": a["points"], "count": count,
        },
        (count, 1, 1), floats={"scale": float(a["scale"]), "shift": 0.5 if a["half"] else 0.0},
        flops=8 * outer.n * outer.c * outer.hw * a["points"] ** 2, traffic=context.traffic(node),
        switches={"LARGEST": int(a["kind"] == "max")},
    )  # fmt: skip
