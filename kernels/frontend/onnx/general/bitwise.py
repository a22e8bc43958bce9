"""Whole numbers bit by bit: each bit becomes a number, 0 or 1, and what is made of them is added up again."""

from __future__ import annotations

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.ir.compositions import unequal
from kernels.ir.expressions import Expression, with_operands

from .functions import wrapped
from .steps import MAX_PLACES, Steps

BITWISE: dict[str, Expression] = {
    "BitwiseAnd": ("mul", "a", "b"),
    "BitwiseOr": ("max", "a", "b"),
    "BitwiseXor": unequal("a", "b"),
}
"""Expressions of two bits."""
_MOST_BITS = 24
"""Bits of whole numbers that fp32 holds."""
_MOST_SHIFT = 63


def bitwise(node: OnnxNode, to: Context) -> None:
    """And, or, exclusive or. A negative number has, as in two's complement, a last bit that is worth less than 0."""
    s = Steps(node, to)
    kind = to.type_of(s.operand(0))
    signed = kind.kind == "i"
    count = min(_MOST_BITS, 8 * kind.itemsize - signed)
    worth = 2.0 ** np.arange(count + signed)
    to.sums = max(to.sums, 1 << count)
    bit = with_operands(BITWISE[node.op], {"a": _bit_of("a"), "b": _bit_of("b")})
    a, b = (_spread(s, index) for index in (0, 1))
    values = np.where(np.arange(len(worth)) == count, -worth, worth)
    found = s.map(("mul", bit, "d"), a, b, 1 / worth, values)
    s.end(s.reduce(found, [len(s.shape(found)) - 1], "sum", keep=False))


def _bit_of(number: Expression) -> Expression:
    """The bit that is worth 1 / c: what is odd of the number in that measure."""
    measured: Expression = ("floor", ("mul", number, "c"))
    return ("sub", measured, ("mul", 2.0, ("floor", ("mul", measured, 0.5))))


def _spread(s: Steps, index: int) -> str | AnyArray:
    """An operand with a last axis for its bits."""
    name = s.operand(index)
    value, wanted = s.value(name), (*s.shape(name), 1)
    if value is None:
        return s.reshape(name, wanted)
    if value.size and (value.max() > MAX_PLACES or int(value.min()) < -MAX_PLACES):
        s.node.reject(f"{name!r} holds whole numbers beyond 2^24, which fp32 does not hold")
    return value.reshape(wanted)


def bitwise_not(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    kind = to.type_of(s.operand(0))
    if kind.kind == "u" and kind.itemsize > 2:
        node.reject(f"all bits of {kind} but few make a number beyond 2^24, which fp32 does not hold")
    s.end(s.map(("sub", float(np.iinfo(kind).max) if kind.kind == "u" else -1.0, "a"), s.operand(0)))


def bit_shift(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, by = s.operand(0), s.operand(1)
    left = str(s.attribute("direction")) == "LEFT"
    known, powers = s.value(by), (2.0 if left else 0.5) ** np.arange(_MOST_SHIFT + 1)
    factor = s.gather(s.constant(powers), by, 0) if known is None else powers[np.minimum(known, _MOST_SHIFT)]
    shifted: Expression = ("mul", "a", "b")
    s.end(s.map(wrapped(s, shifted, to.type_of(x)) if left else ("floor", shifted), x, factor))
