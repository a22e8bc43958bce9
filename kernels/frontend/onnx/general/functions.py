"""Operators that compute each element by itself, as expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode, may_wrap
from kernels.frontend.onnx.elementwise import check_keeps_all
from kernels.ir import compositions as c
from kernels.ir.expressions import Expression

from .padded.bounds import bounds_of
from .steps import Steps

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
        ("IsNaN", c.is_nan), ("Mish", c.mish), ("Not", c.negation), ("Relu", c.relu),
        ("Sigmoid", c.sigmoid), ("Sign", c.sign), ("Sinh", c.sinh), ("Softplus", c.softplus), ("Softsign", c.softsign),
    )},
    "Celu": lambda a: c.celu("a", a("alpha", 1.0)),
    "Elu": lambda a: c.elu("a", a("alpha", 1.0)),
    "Gelu": lambda a: c.gelu_tanh("a") if a("approximate", "none") == "tanh" else c.gelu("a"),
    "HardSigmoid": lambda a: c.hard_sigmoid("a", a("alpha", 0.2), a("beta", 0.5)),
    "HardSwish": _same(c.hard_swish("a")),
    "IsInf": lambda a: c.is_infinite("a", bool(a("detect_negative", 1)), bool(a("detect_positive", 1))),
    "LeakyRelu": lambda a: c.leaky_relu("a", a("alpha", 0.01)),
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


def where(node: OnnxNode, to: Context) -> None:
    """One of two, which may be NaN where nothing is known."""
    s = Steps(node, to)
    names = [s.operand(index) for index in range(3)]
    for index, value in enumerate(map(s.value, names)):
        if value is not None and value.dtype.kind == "f" and np.isnan(value).any():
            names[index] = s.constant(value, nan=True)
    s.end(s.map(("select", "a", "b", "c"), *names))


def clip(node: OnnxNode, to: Context) -> None:
    """Clip with bounds that are computed."""
    s = Steps(node, to)
    found = s.operand(0)
    for index, function in ((1, "max"), (2, "min")):
        if s.has(index):
            found = s.map((function, "a", "b"), found, s.operand(index))
    s.end(found)


def cast(node: OnnxNode, to: Context) -> None:
    """Floats are cut off, and start again past the end of 8 and 16 bits (so do onnxruntime's up to 2^31); conditions
    are 0 and 1, halves are rounded (what is made of them is not, as there)."""
    s = Steps(node, to)
    wanted, given = to.cast_target(node), to.type_of(node.input(0))
    if wanted == np.bool_:
        s.end(s.map(c.truth("a"), s.operand(0)))
    elif wanted.kind not in "iuf" and wanted.name not in HALVES:
        node.reject(
            f"numbers of type {wanted.name} are not supported: cast to a wider type, and export the model again"
        )
    elif wanted.name in HALVES and not _holds(wanted, given):
        s.end(s.map((wanted.name, "a"), s.operand(0)))
    elif np.issubdtype(wanted, np.integer) and not (np.issubdtype(given, np.integer) or given == np.bool_):
        whole = c.trunc("a")
        s.end(s.map(whole if _within(to, node.input(0), wanted) else wrapped(whole, wanted), s.operand(0)))
    elif may_wrap(wanted) and not np.can_cast(given, wanted):
        s.end(s.map(wrapped("a", wanted), s.operand(0)))
    else:
        s.end(s.operand(0))


def _within(to: Context, name: str, kind: np.dtype[Any]) -> bool:
    """Return whether a type holds all that a tensor may hold, cut off."""
    limits, (low, high) = np.iinfo(kind), bounds_of(to, name)
    return limits.min - 1 < low and high < limits.max + 1


HALVES = ("float16", "bfloat16")
"""Types to which a cast rounds, and the functions that do."""


def _holds(kind: np.dtype[Any], given: np.dtype[Any]) -> bool:
    """Return whether halves of one kind hold every number of another type."""
    return kind == given or given.kind == "b" or (given.kind in "iu" and given.itemsize == 1)


def one_hot(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    indices, depth = s.operand(0), int(np.reshape(to.constant(node, 1), -1)[0])
    values, known = s.operand(2), s.value(s.operand(2))
    off, on = (s.slice(values, 0, k, k + 1) if known is None else known.reshape(2)[k] for k in (0, 1))
    shape = s.shape(indices)
    if depth < 1:
        raise ModelError(f"node {node.name!r} (OneHot): depth is {depth}; expected at least 1")
    axis = node.axis(s.attribute("axis", -1), len(shape) + 1)
    to.reserve(node, 4 * depth)
    s.places(depth)
    wide = s.reshape(indices, (*shape[:axis], 1, *shape[axis:]))
    numbers = np.arange(depth, dtype=np.int32).reshape((-1,) + (1,) * (len(shape) - axis))
    place = ("select", ("less", "a", 0.0), ("add", "a", float(depth)), "a")
    s.end(s.map(("select", ("equal", place, "b"), "c", "d"), wide, numbers, on, off))


def trilu(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, k = s.operand(0), s.whole_numbers(1) or [0]
    mask = np.ones(s.shape(x)[-2:], np.bool_)
    mask = np.triu(mask, k[0]) if s.attribute("upper", 1) else np.tril(mask, k[0])
    s.end(s.map(("select", "b", "a", 0.0), x, mask))


def dropout(node: OnnxNode, to: Context) -> None:
    """Pass the input on, as at inference, with the mask that keeps everything."""
    s = Steps(node, to)
    check_keeps_all(node, to)
    s.end(s.operand(0))
    to.constants[node.outputs[1]] = np.ones(s.shape(s.operand(0)), np.bool_)
