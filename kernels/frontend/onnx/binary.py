"""Add, Mul, Sub and Div as one operation; the second operand may be a constant that broadcasts."""

from __future__ import annotations

import numpy as np

from .context import AnyArray, Context, OnnxNode, may_wrap

_NEGATED = {"f": np.float64, "u": np.int64}
"""Types in which a constant has a negative."""
_NORMAL = 2.0**-126
"""The least number of fp32 that is not denormal; devices may take smaller ones for 0."""


def add(node: OnnxNode, to: Context) -> bool:
    return _commutative(node, to, "add")


def mul(node: OnnxNode, to: Context) -> bool:
    return _commutative(node, to, "mul")


def sub(node: OnnxNode, to: Context) -> bool:
    """An activation less a constant."""
    constant = _constant(node, to, 1)
    if constant is None or may_wrap(to.type_of(node.input(0))):
        return False
    negated = -constant.astype(_NEGATED.get(constant.dtype.kind, constant.dtype))
    return with_constant(node, to, "add", node.input(0), negated)


def div(node: OnnxNode, to: Context) -> bool:
    """An activation of floating-point numbers divided by a constant; not a single number, which may be a scale that is
    to be exact."""
    x, constant = node.input(0), _constant(node, to, 1)
    if constant is None or np.issubdtype(to.type_of(x), np.integer) or not to.shapes[x]:
        return False
    divisor = constant.astype(np.float64)
    if not np.all((np.abs(divisor) >= _NORMAL) & (np.abs(divisor) <= 1 / _NORMAL)):
        return False
    return with_constant(node, to, "mul", x, 1 / divisor)


def _constant(node: OnnxNode, to: Context, index: int) -> AnyArray | None:
    """A finite constant beside an activation."""
    return to.known_finite(node, index) if to.is_activation(node.input(1 - index)) else None


def with_constant(node: OnnxNode, to: Context, op: str, x: str, constant: AnyArray) -> bool:
    """Emit `op`(x, constant) where the constant broadcasts to x: with at most one dimension > 1, or else x's shape."""
    aligned = spread_to(to.shapes[x], constant)
    if aligned is None:
        return False
    name = node.input(1) if node.input(1) in to.constants else node.input(0)
    known = to.constants.get(name)
    same = known is not None and known.shape == aligned.shape and np.array_equal(known, aligned)
    to.emit(node, op, (x, to.add_weight(name if same else f"{node.outputs[0]}.constant", aligned)))
    return True


def spread_to(shape: tuple[int, ...], constant: AnyArray) -> AnyArray | None:
    """A constant of the shape's rank; None where it does not broadcast to the shape."""
    try:
        if np.broadcast_shapes(shape, constant.shape) != shape:
            return None
    except ValueError:
        return None
    aligned = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
    return np.broadcast_to(aligned, shape) if sum(extent > 1 for extent in aligned.shape) > 1 else aligned


def _commutative(node: OnnxNode, to: Context, op: str) -> bool:
    if may_wrap(to.type_of(node.input(0))):
        return False
    for x, other in ((0, 1), (1, 0)):
        if node.input(other) in to.constants:
            constant = _constant(node, to, other)
            return constant is not None and with_constant(node, to, op, node.input(x), constant)
    a, b = node.inputs
    if to.shapes[a] != to.shapes[b]:
        return False
    to.emit(node, op, (a, b))
    return True
