"""Functions that the agent computes whole where an expression has them in parts."""

from __future__ import annotations

from kernels.ir import compositions as c
from kernels.ir.expressions import BITS, FUNCTIONS, Expression

CODES = {
    **{name: function.code for name, function in FUNCTIONS.items()},
    "expm1": 25, "sigmoid": 26, "relu": 29, "clip": 30, "leaky_relu": 31, "hard_sigmoid": 32, "hard_swish": 33,
}  # fmt: skip
"""Codes that the agent is told (`device_agent/src/backends/cpu/elements/kernels.inc`)."""
WHOLE_CODES = {
    **{name: function.code for name, function in BITS.items()},
    "remainder": 29, "int8": 36, "uint8": 37, "int16": 38, "uint16": 39, "uint32": 40,
}  # fmt: skip
"""Codes of functions of whole numbers alone (`elements/whole.cc`, whose `div` cuts off)."""


def with_whole_functions(expression: Expression) -> Expression:
    """Return the same with one function in the place of what `kernels/ir/compositions.py` writes for it in several."""
    if not isinstance(expression, tuple):
        return expression
    name, *arguments = _whole(expression) or expression
    return (name, *map(with_whole_functions, arguments))


def _whole(expression: Expression) -> tuple[Expression, ...] | None:
    """Return the one function with its arguments; None where there is none."""
    match expression:
        case ("select", ("equal", _, 1.0), x, _) if expression == c.expm1(x):
            return "expm1", x
        case ("div", 1.0, ("add", 1.0, ("exp", ("neg", x)))):
            return "sigmoid", x
        case ("select", ("less", x, 0.0), ("mul", float(slope), _), _) if expression == c.leaky_relu(x, slope):
            return "leaky_relu", x, slope
        case ("mul", x, ("min", _, 1.0)) if expression == c.hard_swish(x):
            return "hard_swish", x
        case ("min", ("max", ("add", ("mul", float(alpha), x), float(beta)), 0.0), 1.0):
            return "hard_sigmoid", x, alpha, beta
        case ("min", ("max", x, float(low)), float(high)):
            return "clip", x, low, high
        case ("max", x, 0.0):
            return "relu", x
    return None
