"""Element by element: add and mul, affine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from kernels.catalog.packing import padded
from kernels.ir.activations import activated, activation_of
from kernels.ir.dims import Dims, has_channels
from kernels.ir.graph import Array, Node
from kernels.lower.activation import activation_scalars
from kernels.source.kernel import Buffer, Kernel, result, view
from kernels.source.tile import Tile

from .bodies import body
from .context import GpuContext
from .convolution import constant
from .layout import packed
from .maps import lower_map
from .values import View


@dataclass(frozen=True)
class _Turns(Tile):
    """Vectors of four of a work-item."""

    turns: int


_BINARY = Kernel(
    "binary",
    body("binary"),
    (Buffer("a"), Buffer("b"), result("dst")),
    (*view("a"), *view("b"), *view("dst"), "stacks", "hw", "multiply", "by_channel", "activation"),
    ("lo", "hi"),
    _Turns,
    computes_in_half=True,
)
"""b is a tensor of the same shape (by_channel 0), or one vector a stack (by_channel 1)."""
_TURNS = 8
"""Vectors of a work-item on a CPU behind a GPU interface, where starting one costs: lavapipe takes 0.6 of the time."""
_AFFINE = Kernel(
    "affine",
    body("affine"),
    (Buffer("src"), Buffer("scale"), Buffer("shift"), result("dst")),
    (*view("src"), *view("dst"), "hw", "activation"),
    ("lo", "hi"),
    computes_in_half=True,
)


def lower_binary(context: GpuContext, node: Node) -> None:
    """add, mul: two tensors, or a tensor and a constant that broadcasts."""
    a, b = node.inputs[:2]
    if a in context.graph.constants:
        a, b = b, a
    dims, shape = context.dims(node.output), context.graph.shapes[node.output]
    left = packed(context, a)
    by_channel = b in context.graph.constants and _is_by_channel(context.graph.shapes[b], shape)
    right = _channel_vector(context, node, b, dims) if by_channel else _operand(context, b, shape, node)
    target = context.new_packed(node.output, over=(a,) if by_channel else (a, b))
    code, lo, hi = activation_scalars(node)
    vectors = dims.stacks * dims.hw
    turns = min(_TURNS, vectors) if context.limits.cpu_device else 1
    context.dispatch(
        _BINARY, node.name, {"a": left, "b": right, "dst": target},
        {
            **left.ints("a"), **right.ints("b"), **target.ints("dst"), "stacks": dims.stacks, "hw": dims.hw,
            "multiply": int(node.op == "mul"), "by_channel": int(by_channel), "activation": code,
        },
        (-(-vectors // turns), 1, dims.n), floats={"lo": lo, "hi": hi}, tile=_Turns(turns), flops=prod(shape),
        traffic=context.traffic(node),
    )  # fmt: skip


def lower_affine(context: GpuContext, node: Node) -> None:
    """x * scale[c] + shift[c], activated: stacks of channels, or a row-major array where the tensor is no image."""
    if not has_channels(context.graph.shapes[node.output]):
        _affine_in_rows(context, node)
        return
    source, dims = packed(context, node.inputs[0]), context.dims(node.output)
    target = context.new_packed(node.output, over=node.inputs[:1])
    scale, shift = (context.weight(node.inputs[i], padded(constant(context, node, i), 0, 4)) for i in (1, 2))
    code, lo, hi = activation_scalars(node)
    context.dispatch(
        _AFFINE, node.name, {"src": source, "scale": scale, "shift": shift, "dst": target},
        {**source.ints("src"), **target.ints("dst"), "hw": dims.hw, "activation": code}, (dims.hw, dims.stacks, dims.n),
        floats={"lo": lo, "hi": hi}, flops=2 * prod(context.graph.shapes[node.output]), traffic=context.traffic(node),
    )  # fmt: skip


def _affine_in_rows(context: GpuContext, node: Node) -> None:
    """The same as a map of constants that spread along the axes behind the channels."""
    inputs, behind = [node.inputs[0]], (1,) * (len(context.graph.shapes[node.output]) - 2)
    for name in node.inputs[1:3]:
        spread = f"{node.output}:{name}"
        array = context.graph.constants[name]
        context.graph.constants[spread] = array.reshape(-1, *behind)
        context.graph.shapes[spread], context.graph.types[spread] = (array.size, *behind), "f32"
        inputs.append(spread)
    expression = activated(("add", ("mul", "a", "b"), "c"), activation_of(node))
    lower_map(context, replace(node, op="map", inputs=tuple(inputs), attributes={"expression": expression}))


def _is_by_channel(b: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a constant varies along the channels only."""
    if not has_channels(shape):
        return False
    full = (1,) * (len(shape) - len(b)) + b
    return len(full) == len(shape) and all(size == 1 for axis, size in enumerate(full) if axis != 1)


def _channel_vector(context: GpuContext, node: Node, name: str, dims: Dims) -> View:
    array: Array = np.broadcast_to(context.graph.constants[name].astype(np.float32).reshape(-1), (dims.c,))
    return View(context.weight(f"{node.name}:{name}", padded(array, 0, 4)), dims.stacks, 0)


def _operand(context: GpuContext, name: str, shape: tuple[int, ...], node: Node) -> View:
    """A tensor, or a constant written out to the result's shape."""
    if name in context.graph.constants and context.graph.shapes[name] != shape:
        full = f"{node.name}:{name}"
        context.graph.constants[full] = np.broadcast_to(context.graph.constants[name], shape).astype(np.float32)
        context.graph.shapes[full] = shape
        return packed(context, full)
    return packed(context, name)
