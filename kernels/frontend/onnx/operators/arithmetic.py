"""Operators that compute each element by itself, as expressions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import add, mul, sub
from typing import Any

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode, may_wrap
from kernels.frontend.onnx.counted_rows import counts
from kernels.frontend.onnx.counted_rows.rules import elementwise
from kernels.frontend.onnx.extent import larger, smaller
from kernels.frontend.onnx.operator import Operator, Values
from kernels.frontend.onnx.steps import Steps
from kernels.ir import compositions as c
from kernels.ir.expressions import Expression

Attributes = Callable[..., Any]


def _same(expression: Expression) -> Callable[[Attributes], Expression]:
    return lambda _: expression


UNARY: dict[str, Callable[[Attributes], Expression]] = {
    **{op: _same((name, "a")) for op, name in (
        ("Abs", "abs"), ("Acos", "acos"), ("Asin", "asin"), ("Atan", "atan"), ("Cos", "cos"), ("Erf", "erf"),
        ("Exp", "exp"), ("Floor", "floor"), ("Log", "log"), ("Neg", "neg"), ("Round", "round"), ("Sin", "sin"),
        ("Sqrt", "sqrt"), ("Tan", "tan"), ("Tanh", "tanh"),
    )},
    **{op: _same(make("a")) for op, make in (
        ("Acosh", c.acosh), ("Asinh", c.asinh), ("Atanh", c.atanh), ("Ceil", c.ceil), ("Cosh", c.cosh),
        ("IsNaN", c.is_nan), ("Mish", c.mish), ("Not", c.negation),
        ("Sign", c.sign), ("Sinh", c.sinh), ("Softplus", c.softplus), ("Softsign", c.softsign),
    )},
    "Celu": lambda a: c.celu("a", a("alpha", 1.0)),
    "Elu": lambda a: c.elu("a", a("alpha", 1.0)),
    "Gelu": lambda a: c.gelu_tanh("a") if a("approximate", "none") == "tanh" else c.gelu("a"),
    "IsInf": lambda a: c.is_infinite("a", bool(a("detect_negative", 1)), bool(a("detect_positive", 1))),
    "Reciprocal": lambda _: ("div", 1.0, "a"),
    "Selu": lambda a: c.selu("a", a("alpha", 1.67326319217681884765625), a("gamma", 1.05070102214813232421875)),
    "Shrink": lambda a: c.shrink("a", a("lambd", 0.5), a("bias", 0.0)),
    "Swish": lambda a: c.silu("a", a("alpha", 1.0)),
    "ThresholdedRelu": lambda a: ("select", ("less", a("alpha", 1.0), "a"), "a", 0.0),
}  # fmt: skip

BINARY: dict[str, Expression] = {
    "Add": ("add", "a", "b"),
    "And": c.both("a", "b"),
    "Div": ("div", "a", "b"),
    "Equal": ("equal", "a", "b"),
    "Greater": ("less", "b", "a"),
    "GreaterOrEqual": c.less_or_equal("b", "a"),
    "Less": ("less", "a", "b"),
    "LessOrEqual": c.less_or_equal("a", "b"),
    "Mul": ("mul", "a", "b"),
    "Or": c.either("a", "b"),
    "PRelu": c.below("a", ("mul", "b", "a")),
    "Pow": ("pow", "a", "b"),
    "Sub": ("sub", "a", "b"),
    "Xor": c.differ("a", "b"),
}
VARIADIC: dict[str, Expression] = {
    "Max": ("max", "a", "b"),
    "Mean": ("add", "a", "b"),
    "Min": ("min", "a", "b"),
    "Sum": ("add", "a", "b"),
}


def unary(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, expression = s.operand(0), UNARY[node.op](s.attribute)
    s.end(s.map(wrapped(expression, to.type_of(x)) if node.op in ("Abs", "Neg") else expression, x))


def binary(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    a, b = s.operand(0), s.operand(1)
    expression = BINARY[node.op]
    kind = to.type_of(a)
    if node.op == "Div" and np.issubdtype(kind, np.integer):
        expression = c.trunc(expression)
    exponent = to.constants.get(b) if node.op == "Pow" else None
    if exponent is not None and exponent.size == 1:
        expression = _power(float(exponent.reshape(())))
    if node.op == "Pow" and np.issubdtype(kind, np.integer):
        expression = _whole_power(s, expression, b)
    s.end(s.map(wrapped(expression, kind) if node.op in ("Add", "Div", "Mul", "Sub") else expression, a, b))


def wrapped(expression: Expression, kind: np.dtype[Any]) -> Expression:
    """Whole numbers as a type of 8 or 16 bits holds them: past the end of its range they start again."""
    if not may_wrap(kind):
        return expression
    low, count = float(np.iinfo(kind).min), 2.0 ** (8 * kind.itemsize)
    apart: Expression = ("sub", expression, low) if low else expression
    turns: Expression = ("mul", ("floor", ("mul", apart, 1 / count)), count)
    return ("sub", expression, turns)


def _whole_power(s: Steps, power: Expression, exponent: str) -> Expression:
    """Cut the power of a whole number off, where the exponent is not known to be whole and at least 0."""
    known = s.value(exponent)
    if known is not None:
        if np.any(known < 0) or np.any(known != np.floor(known)):
            s.node.reject("a whole number to a power that is negative or a fraction is not supported; cast it to FLOAT")
        return power
    if np.issubdtype(s.to.type_of(exponent), np.integer):
        return ("round", power)
    return c.trunc(("mul", power, 1 + 2.0**-19))  # `pow` of OpenCL is off by up to 2^-20


def _power(exponent: float) -> Expression:
    known: dict[float, Expression] = {
        0.5: ("sqrt", "a"),
        1.0: ("add", "a", 0.0),
        2.0: ("mul", "a", "a"),
        3.0: ("mul", "a", ("mul", "a", "a")),
        -1.0: ("div", 1.0, "a"),
    }
    return known.get(exponent, ("pow", "a", "b"))


def variadic(node: OnnxNode, to: Context) -> None:
    """Combine any number of operands."""
    s = Steps(node, to)
    found = s.operand(0)
    for index in range(1, len(node.inputs)):
        found = s.map(VARIADIC[node.op], found, s.operand(index))
    if node.op == "Mean":
        found = s.map(("mul", "a", 1 / len(node.inputs)), found)
    s.end(found)


def mod(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    make = c.remainder_of_dividend if s.attribute("fmod", 0) else c.remainder
    s.end(s.map(make("a", "b"), s.operand(0), s.operand(1)))


_NEGATED = {"f": np.float64, "u": np.int64}
"""Types in which a constant has a negative."""
_NORMAL = 2.0**-126
"""The least number of fp32 that is not denormal; devices may take smaller ones for 0."""


def subtract_directly(node: OnnxNode, to: Context) -> bool:
    """An activation less a constant."""
    constant = _constant(node, to, 1)
    if constant is None or may_wrap(to.type_of(node.input(0))):
        return False
    negated = -constant.astype(_NEGATED.get(constant.dtype.kind, constant.dtype))
    return with_constant(node, to, "add", node.input(0), negated)


def divide_directly(node: OnnxNode, to: Context) -> bool:
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


def _commutative(op: str, node: OnnxNode, to: Context) -> bool:
    """The sum or product of two activations, or of one and a constant."""
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


BITWISE = {"BitwiseAnd": "bit_and", "BitwiseOr": "bit_or", "BitwiseXor": "bit_xor"}


def bitwise(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    s.end(s.map((BITWISE[node.op], "a", "b"), s.operand(0), s.operand(1)))


def bitwise_not(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    s.end(s.map(("bit_not", "a"), s.operand(0)))


def bit_shift(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    left = str(s.attribute("direction")) == "LEFT"
    shifted: Expression = ("shift_left" if left else "shift_right", "a", "b")
    found = s.map(shifted, s.operand(0), s.operand(1))
    s.end(s.map(wrapped("a", to.type_of(s.operand(0))), found) if left else found)


def _divided(_: OnnxNode, values: Values) -> AnyArray:
    """Integers are divided towards zero."""
    a, b = values
    if not np.all(b):
        raise ValueError("division by zero")
    if np.issubdtype(np.asarray(a).dtype, np.integer):
        return np.asarray(np.trunc(a / b)).astype(a.dtype)
    return np.asarray(a / b)


OPERATORS = (
    *(Operator(name, import_=unary, rows=elementwise) for name in UNARY if name not in ("Gelu", "Sqrt")),
    Operator("Gelu", import_=unary, rows=elementwise, choices={"approximate": ("none", "tanh")}),
    Operator("Sqrt", import_=unary, rows=elementwise, fold=lambda _, v: np.asarray(np.sqrt(v[0]))),
    *(Operator(name, import_=binary, rows=elementwise) for name in ("And", "GreaterOrEqual", "LessOrEqual", "Or")),
    *(Operator(name, import_=binary, rows=elementwise) for name in ("PRelu", "Xor")),
    *(Operator(name, import_=variadic, rows=elementwise) for name in ("Mean", "Sum")),
    *(Operator(name, import_=bitwise) for name in BITWISE),
    Operator(
        "Add", import_=binary, direct=partial(_commutative, "add"), rows=elementwise, follow=counts.of_each(add),
        fold=lambda _, v: np.asarray(v[0] + v[1]),
    ),
    Operator("BitShift", import_=bit_shift, choices={"direction": ("LEFT", "RIGHT")}),
    Operator("BitwiseNot", import_=bitwise_not),
    Operator("Div", import_=binary, direct=divide_directly, rows=elementwise, fold=_divided),
    Operator("Equal", import_=binary, rows=elementwise, follow=counts.equal),
    Operator("Greater", import_=binary, rows=elementwise, follow=counts.greater),
    Operator("Less", import_=binary, rows=elementwise, follow=counts.less),
    Operator(
        "Max", import_=variadic, rows=elementwise, follow=counts.of_each(larger),
        fold=lambda _, v: np.asarray(np.maximum.reduce(np.broadcast_arrays(*v))),
    ),
    Operator(
        "Min", import_=variadic, rows=elementwise, follow=counts.of_each(smaller),
        fold=lambda _, v: np.asarray(np.minimum.reduce(np.broadcast_arrays(*v))),
    ),
    Operator("Mod", import_=mod, rows=elementwise),
    Operator(
        "Mul", import_=binary, direct=partial(_commutative, "mul"), rows=elementwise, follow=counts.of_each(mul),
        fold=lambda _, v: np.asarray(v[0] * v[1]),
    ),
    Operator(
        "Pow", import_=binary, rows=elementwise, fold=lambda _, v: np.asarray(v[0] ** v[1]).astype(v[0].dtype)
    ),
    Operator(
        "Sub", import_=binary, direct=subtract_directly, rows=elementwise, follow=counts.of_each(sub),
        fold=lambda _, v: np.asarray(v[0] - v[1]),
    ),
)  # fmt: skip
