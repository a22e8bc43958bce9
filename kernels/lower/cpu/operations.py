"""Each canonical operation as calls of the agent's built-in operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from kernels.errors import UnsupportedNode
from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Array, Node
from kernels.ir.packed import PackedMatrix
from kernels.ir.taking import Axis
from kernels.lower.activation import activation_scalars

from .algorithms import in_int8, reads_panels, rounds_input
from .context import CpuContext
from .convolution import input_steps, lower_conv, lower_im2col
from .general import (
    lower_gather,
    lower_map,
    lower_put_rows,
    lower_reduce,
    lower_roi_align,
    lower_sort,
    lower_suppress,
    lower_take,
    move,
)
from .images import lower_instance_norm, lower_pad, lower_resize
from .packing import BLOCK, MOST_WITH_OFFSETS, blocks, pack_bias, pack_dense, pack_int8
from .rows import lower_attention, lower_cached, lower_row_norm


def _activation(node: Node) -> tuple[dict[str, int], dict[str, float]]:
    code, lo, hi = activation_scalars(node)
    return {"activation": code}, {"lo": lo, "hi": hi}


_JOINS = ("", "add", "mul")


def _dense(context: CpuContext, node: Node) -> None:
    n, c = context.graph.shapes[node.inputs[0]]
    m = context.graph.shapes[node.output][1]
    src, weight = context.read(node.inputs[0]), context.graph.constants.get(node.inputs[1])
    norm = context.norms.get(node.inputs[0])
    dst = context.write(node.output)
    has_bias = int(len(node.inputs) > 2 and node.inputs[2] != "")
    bias = dst
    operation = "dense_sequential" if context.options.algorithm == "sequential" else "product"
    ints, floats = _activation(node)
    if weight is not None and reads_panels(context.options, context.graph, node):
        if in_int8(context.options, context.graph, node):
            given, step = input_steps(node)
            key = "int8", node.inputs[1], rounds_input(node)
            whole, offsets = context.once(key, lambda: _int8_weights(context, node, weight))
            values = context.scratch(f"{node.name}:values", n * -(-c // 4) * 4, "u8")
            operation, buffers = "dense_int8", {**whole, "values": values}
            ints, floats = {**ints, **given, "offsets": int(offsets)}, {**floats, **step}
            context.draft.chosen[node.name] = "int8"
        else:
            operation, joins, buffers = "dense_nc16", node.attributes.get("joins", ""), {}
            pack = partial(context.weight, f"{node.name}:weight", layout="packed")
            if isinstance(weight, PackedMatrix) and weight.is_turned:
                operation = "dense_packed"
                buffers["weight"], layout = context.panels(f"{node.name}:weight", weight)
                ints |= layout
            else:
                buffers["weight"] = context.once(("dense", node.inputs[1]), lambda: pack(pack_dense(weight)))
            buffers |= {"beside": context.read(node.inputs[3]) if joins else dst}
            buffers |= {"norm": context.read(norm.inputs[1]) if norm else dst}
            ints |= {"joins": _JOINS.index(joins), "normed": int(norm is not None)}
            floats |= {"epsilon": float(norm.attributes["epsilon"]) if norm else 0.0}
        if has_bias:
            bias = context.weight(f"{node.name}:bias", pack_bias(context.graph.constants[node.inputs[2]]), "packed")
    else:
        buffers = {"weight": context.read(node.inputs[1])}
        bias = context.read(node.inputs[2]) if has_bias else dst
    ints["has_bias"] = has_bias
    if operation == "product":
        buffers = {"a": src, "b": buffers["weight"]}
        ints |= {"rows": n, "depth": c, "columns": m, "a_stride": c, "b_stride": m, "a_turned": 0, "b_turned": 0}
    else:
        buffers["src"] = src
        ints |= {"n": n, "c": c, "m": m}
    buffers |= {"bias": bias, "dst": dst}
    context.call(operation, node, buffers, ints, floats, 2 * n * c * m)


def _int8_weights(context: CpuContext, node: Node, weight: Array) -> tuple[dict[str, str], bool]:
    """Weights of a dense layer in 8 bits, and whether they have offsets."""
    is_rounded = rounds_input(node)
    offsets = is_rounded and len(weight) <= MOST_WITH_OFFSETS
    packed = pack_int8(weight.T[:, :, None, None], plain_source=True, on_grid=is_rounded, offsets=offsets)
    buffers = {
        "weight": context.packed(f"{node.name}:weight", packed.weight),
        "scale": context.weight(f"{node.name}:scale", packed.scale, "packed"),
        "sums": context.packed(f"{node.name}:sums", packed.sums),
    }
    return buffers, packed.sums.ndim > packed.scale.ndim


def _matmul(context: CpuContext, node: Node) -> None:
    shape, a, b = context.graph.shapes[node.output], node.inputs[0], node.inputs[1]
    batch, m, n, k = prod(shape[:-2]), shape[-2], shape[-1], context.graph.shapes[a][-1]
    for name in (a, b):
        if prod(context.graph.shapes[name][:-2]) != batch:
            raise UnsupportedNode(f"{node.name}: matmul that broadcasts its batch is not supported on the CPU backend")
    buffers = {"a": context.read(a), "b": context.read(b), "dst": context.write(node.output)}
    context.call("matmul", node, buffers, {"batch": batch, "m": m, "k": k, "n": n}, None, 2 * batch * m * n * k)


def _pool(context: CpuContext, node: Node) -> None:
    n, c, h, w = context.graph.shapes[node.inputs[0]]
    _, _, oh, ow = context.graph.shapes[node.output]
    a = node.attributes
    (kh, kw), (sh, sw) = a["kernel"], a.get("strides", (1, 1))
    top, left, bottom, right = a.get("pads", (0, 0, 0, 0))
    in_blocks = context.writes_blocks(node.output)
    src = (context.read_blocks if in_blocks else context.read)(node.inputs[0])
    dst, channels, offset = (context.place_blocks if in_blocks else context.place)(node.output)
    ints = {
        "n": n, "c": c, "h": h, "w": w, "oh": oh, "ow": ow, "kh": kh, "kw": kw, "sh": sh, "sw": sw, "pad_t": top,
        "pad_l": left, "pad_b": bottom, "pad_r": right, "dst_channels": channels, "dst_offset": offset,
        "mode": 0 if node.op == "max_pool" else 2 if a.get("count_include_pad", 0) else 1,
    }  # fmt: skip
    operation = "pool2d_nc16" if in_blocks else "pool2d"
    context.call(operation, node, {"src": src, "dst": dst}, ints, None, n * c * oh * ow * kh * kw)


def _global_average_pool(context: CpuContext, node: Node) -> None:
    n, c, h, w = context.graph.shapes[node.inputs[0]]
    if not context.writes_blocks(node.output):
        lower_reduce(context, replace(node, attributes={"kind": "mean", "start": 2, "stop": 4}))
        return
    ints = {"n": n, "c": c, "hw": h * w}
    context.call("global_average_pool_nc16", node, _unary(context, node), ints, None, n * c * h * w)


def _unary(context: CpuContext, node: Node) -> dict[str, str]:
    """Source and result in the layout of the result."""
    if context.writes_blocks(node.output):
        return {"src": context.read_blocks(node.inputs[0]), "dst": context.write_blocks(node.output)}
    return {"src": context.read(node.inputs[0]), "dst": context.write(node.output)}


def _softmax(context: CpuContext, node: Node) -> None:
    shape, axis = context.graph.shapes[node.inputs[0]], node.attributes["axis"]
    ints = {"outer": prod(shape[:axis]), "axis": shape[axis], "inner": prod(shape[axis + 1 :])}
    buffers = {"src": context.read(node.inputs[0]), "dst": context.write(node.output)}
    context.call("softmax", node, buffers, ints, None, 4 * prod(shape))


def _lrn(context: CpuContext, node: Node) -> None:
    n, c, *rest = context.graph.shapes[node.inputs[0]]
    a = node.attributes
    ints = {"n": n, "c": c, "hw": prod(rest), "size": int(a["size"])}
    floats = {name: float(a[name]) for name in ("alpha", "beta", "bias")}
    context.call("lrn_nc16", node, _unary(context, node), ints, floats, n * c * prod(rest) * (2 * int(a["size"]) + 4))


def _binary(context: CpuContext, node: Node) -> None:
    a, b = node.inputs[:2]
    if a in context.graph.constants:
        a, b = b, a
    shape = context.graph.shapes[node.output]
    if context.writes_blocks(node.output):
        _binary_in_blocks(context, node)
        return
    right, mode, axes = _broadcast(context, node, b, shape)
    ints, floats = _activation(node)
    ints |= {"op": int(node.op == "mul"), "mode": mode, **dict(zip(("outer", "axis", "inner"), axes, strict=True))}
    buffers = {"a": context.read(a), "b": right, "dst": context.write(node.output)}
    context.call("binary", node, buffers, ints, floats, prod(shape))


def _binary_in_blocks(context: CpuContext, node: Node) -> None:
    """Two tensors of one shape, element by element, in any order of the elements."""
    count = context.block_elements(node.output)
    ints, floats = _activation(node)
    ints |= {"op": int(node.op == "mul"), "mode": 0, "outer": 1, "axis": count, "inner": 1}
    a, b = (context.read_blocks(name) for name in node.inputs[:2])
    buffers = {"a": a, "b": b, "dst": context.write_blocks(node.output)}
    context.call("binary", node, buffers, ints, floats, prod(context.graph.shapes[node.output]))


def _broadcast(
    context: CpuContext, node: Node, b: str, shape: tuple[int, ...]
) -> tuple[str, int, tuple[int, int, int]]:
    """(buffer, mode, (outer, axis, inner)); a constant that fits no mode is written out in full."""
    given = context.graph.shapes[b]
    if given == shape or b not in context.graph.constants:
        return context.read(b), 0, (1, prod(shape), 1)
    if prod(given) == 1:
        return context.read(b), 2, (1, prod(shape), 1)
    wide = [axis for axis, size in enumerate((1,) * (len(shape) - len(given)) + given) if size > 1]
    if len(wide) == 1:
        axis = wide[0]
        return context.read(b), 1, (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
    full: Array = np.broadcast_to(context.graph.constants[b], shape)
    return context.weight(f"{node.name}:{b}", full), 0, (1, prod(shape), 1)


def _affine(context: CpuContext, node: Node) -> None:
    n, c, *rest = context.graph.shapes[node.inputs[0]]
    ints, floats = _activation(node)
    if context.writes_blocks(node.output):
        scale, shift = (_in_block(context, node, name) for name in node.inputs[1:3])
        ints |= {"c": blocks(c) * BLOCK, "lanes": BLOCK}
    else:
        scale, shift = (context.read(name) for name in node.inputs[1:3])
        ints |= {"c": c, "lanes": 1}
    buffers = {**_unary(context, node), "scale": scale, "shift": shift}
    context.call("affine", node, buffers, {"n": n, "hw": prod(rest), **ints}, floats, 2 * n * c * prod(rest))


def _in_block(context: CpuContext, node: Node, name: str) -> str:
    """A constant of a number a channel, filled up to whole blocks."""
    return context.weight(f"{node.name}:{name}", pack_bias(context.graph.constants[name]), "packed")


def _concat(context: CpuContext, node: Node) -> None:
    shape, axis = context.graph.shapes[node.output], node.attributes["axis"]
    in_blocks = context.writes_blocks(node.output)
    dst, offset, outer = (context.write_blocks if in_blocks else context.write)(node.output), 0, prod(shape[:axis])
    stride = context.block_elements(node.output) // outer if in_blocks else prod(shape[axis:])
    channel = 0
    for name in node.inputs:
        count = context.block_elements(name) // outer if in_blocks else prod(context.graph.shapes[name][axis:])
        if not context.is_at(name, node.output, channel) and not context.is_part(name, node.output, offset):
            src = (context.read_blocks if in_blocks else context.read)(name)
            axes = Axis(outer, count), Axis(count, 1)
            move(context, node, {"src": src, "dst": dst}, axes, rows=(offset, stride))
        offset += count
        channel += context.graph.shapes[name][axis]


def _slice(context: CpuContext, node: Node) -> None:
    shape, a = context.graph.shapes[node.inputs[0]], node.attributes
    outer, inner = prod(shape[: a["axis"]]), prod(shape[a["axis"] + 1 :])
    if outer == 1 and not context.is_some_part(node.output):
        count = prod(context.graph.shapes[node.output])
        source, kind = context.read(node.inputs[0]), context.held(node.output)
        context.buffers[node.output] = context.view(source, a["start"] * inner, count, kind)
        return
    axes = Axis(outer, shape[a["axis"]] * inner), Axis((a["stop"] - a["start"]) * inner, 1)
    buffers = {"src": context.read(node.inputs[0]), "dst": context.write(node.output)}
    move(context, node, buffers, axes, a["start"] * inner)


def _reshape(context: CpuContext, node: Node) -> None:
    context.buffers[node.output] = context.read(node.inputs[0])
    if node.inputs[0] in context.norms:
        context.norms[node.output] = context.norms[node.inputs[0]]


def _transpose(context: CpuContext, node: Node) -> None:
    old = context.graph.shapes[node.inputs[0]]
    axes = [Axis(old[axis], prod(old[axis + 1 :])) for axis in node.attributes["perm"]]
    move(context, node, {"src": context.read(node.inputs[0]), "dst": context.write(node.output)}, axes)


LOWERINGS: dict[str, Callable[[CpuContext, Node], None]] = {
    "conv": lower_conv,
    "im2col": lower_im2col,
    "dense": _dense,
    "matmul": _matmul,
    **dict.fromkeys(ACTIVATIONS, lower_map),
    "max_pool": _pool,
    "average_pool": _pool,
    "global_average_pool": _global_average_pool,
    "concat": _concat,
    "add": _binary,
    "mul": _binary,
    "affine": _affine,
    "instance_norm": lower_instance_norm,
    "softmax": _softmax,
    "lrn": _lrn,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "pad": lower_pad,
    "resize": lower_resize,
    "map": lower_map,
    "take": lower_take,
    "gather": lower_gather,
    "put_rows": lower_put_rows,
    "reduce": lower_reduce,
    "sort": lower_sort,
    "suppress": lower_suppress,
    "roi_align": lower_roi_align,
    "attention": lower_attention,
    "row_norm": lower_row_norm,
    "append": lower_cached,
    "attend": lower_cached,
}
