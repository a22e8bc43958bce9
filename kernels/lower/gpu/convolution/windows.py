"""The first of a convolution's two steps by im2col, where they are placed apart."""

from __future__ import annotations

from kernels.catalog.convolution.kernel_parts import DILATION, WINDOW
from kernels.ir.graph import Node
from kernels.lower.gpu.bodies import body
from kernels.lower.gpu.context import GpuContext
from kernels.lower.gpu.layout import packed
from kernels.source.kernel import Buffer, Kernel, result, view

_WINDOWS = Kernel(
    "windows",
    body("windows"),
    (Buffer("src"), result("dst")),
    (*view("src"), *view("dst"), "channels", *WINDOW, *DILATION),
)


def lower_im2col(context: GpuContext, node: Node) -> None:
    """A 3-D kernel, as study C's: pixels, stacks of what they write, images."""
    source, target = packed(context, node.inputs[0]), context.new_packed(node.output)
    inner, outer, a = context.dims(node.inputs[0]), context.dims(node.output), node.attributes
    context.dispatch(
        _WINDOWS, node.name, {"src": source, "dst": target},
        {
            **source.ints("src"), **target.ints("dst"), "channels": inner.c, "h": inner.h, "w": inner.w, "oh": outer.h,
            "ow": outer.w, "kh": a["kernel"][0], "kw": a["kernel"][1], "sh": a["strides"][0], "sw": a["strides"][1],
            "pad_t": a["pads"][0], "pad_l": a["pads"][1], "dh": a["dilations"][0], "dw": a["dilations"][1],
        },
        (outer.hw, outer.stacks, outer.n), traffic=context.traffic(node),
    )  # fmt: skip
