"""Operations on whole images: instance normalisation, padding, resizing."""

from __future__ import annotations

from kernels.ir.graph import Node
from kernels.ir.resampling import PAD_MODES, ratio
from kernels.lower.activation import activation_scalars

from .context import CpuContext


def lower_instance_norm(context: CpuContext, node: Node) -> None:
    n, c, h, w = context.graph.shapes[node.inputs[0]]
    scale, shift = (context.read(name) for name in node.inputs[1:3])
    code, lo, hi = activation_scalars(node)
    buffers = {"src": context.read(node.inputs[0]), "scale": scale, "shift": shift, "dst": context.write(node.output)}
    floats = {"epsilon": float(node.attributes["epsilon"]), "lo": lo, "hi": hi}
    ints = {"n": n, "c": c, "hw": h * w, "groups": node.attributes.get("groups", c), "activation": code}
    context.call("instance_norm", node, buffers, ints, floats, 7 * n * c * h * w)


def lower_pad(context: CpuContext, node: Node) -> None:
    n, c, h, w = context.graph.shapes[node.inputs[0]]
    pads = dict(zip(("pad_t", "pad_l", "pad_b", "pad_r"), node.attributes["pads"], strict=True))
    ints = {"planes": n * c, "h": h, "w": w, **pads, "mode": PAD_MODES[node.attributes["mode"]]}
    buffers = {"src": context.read(node.inputs[0]), "dst": context.write(node.output)}
    context.call("pad2d", node, buffers, ints, {"value": float(node.attributes["value"])})


def lower_resize(context: CpuContext, node: Node) -> None:
    n, c, h, w = context.graph.shapes[node.inputs[0]]
    oh, ow = context.graph.shapes[node.output][2:]
    mode, coordinates = node.attributes["mode"], node.attributes["coordinates"]
    ints = {"planes": n * c, "h": h, "w": w, "oh": oh, "ow": ow, "linear": int(mode == "linear")}
    for axis, source, size in (("y", h, oh), ("x", w, ow)):
        way = ratio(mode, coordinates, source, size)
        ints |= {f"step_{axis}": way.step, f"start_{axis}": way.start, f"divisor_{axis}": way.divisor}
    buffers = {"src": context.read(node.inputs[0]), "dst": context.write(node.output)}
    context.call("resize2d", node, buffers, ints, None, 8 * n * c * oh * ow)
