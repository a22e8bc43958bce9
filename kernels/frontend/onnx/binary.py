"""Add, Mul, Sub and Div; the second operand may be a constant that broadcasts."""

from __future__ import annotations

import numpy as np

from kernels.ir.shapes import Shape

from .context import AnyArray, Context, OnnxNode, may_wrap

_NEGATED = {"f": np.float64, "u": np.int64}
"""Types in which a constant has a negative."""
_NORMAL = 2.0**-126
"""The least number of fp32 that is not denormal; devices may take smaller ones for 0."""


def add(node: OnnxNode, to: Context) -> None:
    _commutative(node, to, "add")


def mul(node: OnnxNode, to: Context) -> None:
    _commutative(node, to, "mul")


def sub(node: OnnxNode, to: Context) -> None:
    """An activation less a constant."""
    x = to.activation(node)
    _no_wrapping(node, to)
    constant = to.finite(node, 1)
    emit_with_constant(node, to, "add", x, -constant.astype(_NEGATED.get(constant.dtype.kind, constant.dtype)))


def div(node: OnnxNode, to: Context) -> None:
    """An activation of floating-point numbers divided by a constant."""
    x = to.activation(node)
    if np.issubdtype(to.type_of(x), np.integer):
        node.reject("whole numbers are cut off after a division")
    divisor = to.finite(node, 1).astype(np.float64)
    if not np.all((np.abs(divisor) >= _NORMAL) & (np.abs(divisor) <= 1 / _NORMAL)):
        node.reject(f"the constant {node.input(1)!r} holds a divisor whose inverse is no normal number of fp32")
    if not to.shapes[x]:
        node.reject("a single number is divided as it is: it may be a scale, which is to be exact")
    emit_with_constant(node, to, "mul", x, 1 / divisor)


def emit_with_constant(node: OnnxNode, to: Context, op: str, x: str, constant: AnyArray) -> None:
    """Emit `op`(x, constant); the constant gets x's rank and at most one dimension > 1, or else x's whole shape."""
    shape = to.shapes[x]
    try:
        fits = np.broadcast_shapes(shape, constant.shape) == shape
    except ValueError:
        fits = False
    if not fits:
        node.reject(f"a constant of shape {constant.shape} does not broadcast to the activation's shape {shape}")
    aligned = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
    if sum(extent > 1 for extent in aligned.shape) > 1:
        aligned = np.broadcast_to(aligned, shape)
    name = node.input(1) if node.input(1) in to.constants else node.input(0)
    known = to.constants.get(name)
    same = known is not None and known.shape == aligned.shape and np.array_equal(known, aligned)
    b = to.add_weight(name if same else f"{node.outputs[0]}.constant", aligned)
    to.emit(node, op, (x, b))


def _no_wrapping(node: OnnxNode, to: Context) -> None:
    if may_wrap(to.type_of(node.input(0))):
        node.reject("numbers of 8 and 16 bits start again at the end of their range")


def _commutative(node: OnnxNode, to: Context, op: str) -> None:
    _no_wrapping(node, to)
    for x, constant in ((0, 1), (1, 0)):
        if node.input(constant) in to.constants:
            emit_with_constant(node, to, op, to.activation(node, x), to.finite(node, constant))
            return
    a, b = to.activation(node), to.activation(node, 1)
    _require_same(node, to.shapes[a], to.shapes[b])
    to.emit(node, op, (a, b))


def _require_same(node: OnnxNode, a: Shape, b: Shape) -> None:
    if a != b:
        node.reject(f"shapes {a} and {b}: a broadcast between two activations is not supported, only with a constant")
