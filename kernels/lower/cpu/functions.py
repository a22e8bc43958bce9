"""Functions that the agent computes whole where an expression has them in parts."""

from __future__ import annotations

from kernels.ir import compositions
from kernels.ir.expressions import BITS, FUNCTIONS, Expression

CODES = {**{name: function.code for name, function in FUNCTIONS.items()}, "expm1": 25, "sigmoid": 26}
"""Codes that the agent is told (`device_agent/src/backends/cpu/elements/kernels.inc`)."""
WHOLE_CODES = {
    **{name: function.code for name, function in BITS.items()},
    "remainder": 29, "int8": 36, "uint8": 37, "int16": 38, "uint16": 39, "uint32": 40,
}  # fmt: skip
"""Codes of functions of whole numbers alone (`elements/whole.cc`, whose `div` cuts off)."""


def with_whole_functions(expression: Expression) -> Expression:
    """The same with `expm1` and `sigmoid` in the place of what `kernels/ir/compositions.py` writes for them."""
    if not isinstance(expression, tuple):
        return expression
    name, *arguments = expression
    if name == "select" and expression == compositions.expm1(arguments[1]):
        return ("expm1", with_whole_functions(arguments[1]))
    if name == "div" and (x := _of_sigmoid(expression)) is not None:
        return ("sigmoid", with_whole_functions(x))
    return (name, *map(with_whole_functions, arguments))


def _of_sigmoid(expression: Expression) -> Expression | None:
    """x of 1 / (1 + exp(-x))."""
    match expression:
        case ("div", 1.0, ("add", 1.0, ("exp", ("neg", x)))):
            found: Expression = x
            return found
        case _:
            return None
