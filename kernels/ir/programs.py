"""The type in which a node computes: fp32, or whole numbers of 32 or 64 bits that wrap around.

Operands are converted to it, and the result to the type of its tensor. Expressions are written for fp32; what they
spell out for it (a quotient that is cut off, a remainder, the end of a narrow type) is a function of whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from . import compositions as c
from .cache import CACHED
from .expressions import BITS, Expression
from .graph import Node
from .types import ElementType, is_whole

Held = Literal["f32", "i32", "i64"]
"""Types of the numbers that backends hold in memory and compute in."""
APART = ("take", "gather", "put_rows", "suppress", "roi_align", *CACHED)
"""Operations whose further operands are places, or how many are valid."""
_IN_WHOLE = frozenset({
    "take", "gather", "concat", "reshape", "transpose", "slice", "relu", "clip", "add", "mul", "dense", "matmul",
    "conv", "im2col", "reduce", "sort", "pad", "put_rows",
})  # fmt: skip
"""Operations that compute whole numbers as such."""
_WIDE = ("u32", "i64", "u64")
_SAME = ("add", "sub", "mul", "min", "max", "less", "equal", "select", "neg", "abs")
"""Functions of numbers that are functions of whole numbers, too."""
_IDENTITIES = ("floor", "round")
WRAPS: dict[ElementType, str] = {"i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "u32": "uint32"}
"""Types narrower than what holds them, and the functions that keep their last bits."""


def held(kind: ElementType) -> Held:
    """Return the type in which memory holds numbers of a type: conditions and all floating point in fp32."""
    return "f32" if not is_whole(kind) or kind == "bool" else "i64" if kind in _WIDE else "i32"


def program_type(node: Node, types: Mapping[str, ElementType]) -> Held:
    """Return the type in which a map computes."""
    kinds = [types[name] for name in (*node.inputs, *node.outputs)]
    if not all(map(is_whole, kinds)) or is_logical(node, types):
        return "f32"
    if whole_expression(node.attributes["expression"]) is None:
        return "f32"
    return "i64" if any(held(kind) == "i64" for kind in kinds) else "i32"


def computed(node: Node, types: Mapping[str, ElementType]) -> tuple[Held, Expression]:
    """Return the type in which a map computes, and what, in functions of that type."""
    kind, expression = program_type(node, types), node.attributes["expression"]
    if kind == "f32":
        return kind, expression
    found, wrap = whole_expression(expression), WRAPS.get(types[node.output])
    assert found is not None
    return kind, (wrap, found) if wrap else found


def computed_in(node: Node, types: Mapping[str, ElementType]) -> Held:
    """Return the type in which a node computes. Operands are converted to it, and the result to the node's own type;
    but operands of `APART`, of which only the first is."""
    if node.op == "map":
        return program_type(node, types)
    kinds = [types[name] for name in (*node.inputs, node.output) if name][: 1 if node.op in APART else None]
    if not all(map(is_whole, kinds)) or node.op not in _IN_WHOLE or node.attributes.get("kind") == "mean":
        return "f32"
    return "i64" if any(held(kind) == "i64" for kind in kinds) else "i32"


def whole_value(number: float, kind: Held) -> int:
    """Return a whole number; of one that the type does not hold its end."""
    most = 2 ** (63 if kind == "i64" else 31) - 1
    return 0 if number != number else int(min(max(number, -most - 1), most))


def in_floats(node: Node, types: Mapping[str, ElementType]) -> bool:
    """Return whether memory holds all that a node reads and gives in fp32."""
    return all(held(types[name]) == "f32" for name in (*node.inputs, *node.outputs) if name)


def is_logical(node: Node, types: Mapping[str, ElementType]) -> bool:
    """Return whether a map makes conditions of conditions, which are the same in every type."""
    return all(types[name] == "bool" for name in (*node.inputs, *node.outputs))


def whole_expression(expression: Expression) -> Expression | None:
    """Return the expression in functions of whole numbers; None where it has a fraction, or a function of floats."""
    if isinstance(expression, str):
        return expression
    if not isinstance(expression, tuple):
        return expression if float(expression).is_integer() else None
    name, *arguments = expression
    found = _cut_off(expression) or _remainder(expression) or _wrapped(expression)
    if found is not None:
        name, *arguments = found
    elif name not in (*_SAME, *_IDENTITIES, *BITS, "pow"):
        return None
    parts = [part for argument in arguments if (part := whole_expression(argument)) is not None]
    if len(parts) < len(arguments):
        return None
    if name == "floored":
        return _floored(*parts)
    return parts[0] if name in _IDENTITIES else (name, *parts)


Found = tuple[Expression, ...] | None


def _cut_off(expression: tuple[Expression, ...]) -> Found:
    """x without its fraction, which a whole number has not, and a quotient loses."""
    match expression:
        case ("select", ("less", _, 0.0), _, ("floor", x)) if expression == c.trunc(x):
            return x if isinstance(x, tuple) and x[0] == "div" else ("floor", x)
        case ("neg", ("floor", ("neg", x))):
            return ("floor", x)
        case _:
            return None


def _remainder(expression: tuple[Expression, ...]) -> Found:
    match expression:
        case ("select", ("less", _, ("abs", b)), _, ("sub", a, _)):
            if expression == c.remainder(a, b):
                return ("floored", a, b)
            return ("remainder", a, b) if expression == c.remainder_of_dividend(a, b) else None
        case _:
            return None


def _wrapped(expression: tuple[Expression, ...]) -> Found:
    match expression:
        case ("sub", x, ("mul", ("floor", ("mul", apart, share)), count)):
            for function, low, size in (("uint8", 0, 8), ("int8", -128, 8), ("uint16", 0, 16), ("int16", -32768, 16)):
                if (count, share) == (2.0**size, 2.0**-size) and apart == (("sub", x, float(low)) if low else x):
                    return (function, x)
            return None
        case _:
            return None


def _floored(a: Expression, b: Expression) -> Expression:
    """Return the remainder with the sign of b."""
    left: Expression = ("remainder", a, b)
    return ("select", ("less", ("mul", c.sign(left), c.sign(b)), 0.0), ("add", left, b), left)
