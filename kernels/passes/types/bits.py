"""Functions of bits in fp32: each bit becomes a number, 0 or 1, and what is made of them is added up again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kernels.errors import UnsupportedNode
from kernels.ir.compositions import unequal
from kernels.ir.expressions import BITS, LETTERS, Expression, with_operands
from kernels.ir.graph import Array, Node
from kernels.ir.types import to_numpy

if TYPE_CHECKING:
    from .in_single import Steps

_OF_TWO: dict[str, Expression] = {
    "bit_and": ("mul", "a", "b"), "bit_or": ("max", "a", "b"), "bit_xor": unequal("a", "b"),
}  # fmt: skip
"""Expressions of two bits."""
_MOST_BITS, _MOST_SHIFT = 24, 63


def is_of_bits(node: Node) -> bool:
    """Return whether a node is one function of bits, as the import writes it."""
    expression = node.attributes.get("expression")
    return node.op == "map" and isinstance(expression, tuple) and expression[0] in BITS


def bits_in_single(s: Steps, node: Node) -> None:
    """Append what computes the same. Raises UnsupportedNode for constants, and results, beyond what fp32 holds."""
    function = node.attributes["expression"][0]
    ways: dict[str, Callable[[Steps, Node], str]] = {"bit_not": _not, "shift_left": _shift, "shift_right": _shift}
    found = ways.get(function, _of_two)(s, node)
    s.nodes.append(Node(node.name, "reshape", (found,), node.outputs, {"shape": s.graph.shapes[node.output]}))


def _not(s: Steps, node: Node) -> str:
    kind = to_numpy(s.graph.types[node.inputs[0]])
    if kind.kind == "u" and kind.itemsize > 2:
        raise UnsupportedNode(f"{node.name}: all bits of {kind} but few make a number beyond 2^24 of fp32")
    largest = float(np.iinfo(kind).max) if kind.kind == "u" else -1.0
    return s.map(node.name, ("sub", largest, "a"), *node.inputs)


def _of_two(s: Steps, node: Node) -> str:
    """Compute and, or, exclusive or. A negative number has, as in two's complement, a last bit worth less than 0."""
    function, *arguments = node.attributes["expression"]
    kind = to_numpy(s.graph.types[node.output])
    signed = kind.kind == "i"
    count = min(_MOST_BITS, 8 * kind.itemsize - signed)
    worth = 2.0 ** np.arange(count + signed)
    by = {}
    names = [_spread(s, node, name) for name in node.inputs]
    for letter, argument in zip("ab", arguments, strict=True):
        if not isinstance(argument, str) and not -(2**_MOST_BITS) <= argument <= 2**_MOST_BITS:
            raise UnsupportedNode(f"{node.name}: the whole number {argument} is beyond 2^24 of fp32")
        by[letter] = _bit_of(argument, LETTERS[len(names)])
    values = np.where(np.arange(len(worth)) == count, -worth, worth)
    names += [s.constant(node.name, 1 / worth), s.constant(node.name, values)]
    bit: Expression = ("mul", with_operands(_OF_TWO[function], by), LETTERS[len(names) - 1])
    found = s.map(node.name, bit, *names)
    last = len(s.graph.shapes[found]) - 1
    return s.emit(node.name, "reduce", (found,), {"kind": "sum", "start": last, "stop": last + 1})


def _bit_of(number: Expression, share: str) -> Expression:
    """The bit of which one is worth 1 / share: what is odd of the number in that measure."""
    measured: Expression = ("floor", ("mul", number, share))
    return ("sub", measured, ("mul", 2.0, ("floor", ("mul", measured, 0.5))))


def _spread(s: Steps, node: Node, name: str) -> str:
    """An operand with a last axis for its bits."""
    if np.abs(s.graph.constants.get(name, np.zeros(1))).max(initial=0) > 2**_MOST_BITS:
        raise UnsupportedNode(f"{node.name}: {name!r} holds whole numbers beyond 2^24 of fp32")
    return s.emit(node.name, "reshape", (name,), {"shape": (*s.graph.shapes[name], 1)})


def _shift(s: Steps, node: Node) -> str:
    function, x, by = node.attributes["expression"]
    left = function == "shift_left"
    powers: Array = np.asarray((2.0 if left else 0.5) ** np.arange(_MOST_SHIFT + 1), np.float32)
    factor: Expression = by if isinstance(by, str) else float(powers[int(min(by, _MOST_SHIFT))])
    names = list(node.inputs)
    if isinstance(by, str):
        index = LETTERS.index(by)
        gathered = s.emit(node.name, "gather", (s.constant(node.name, powers), names[index]), {"axis": 0})
        if x == by:
            names, factor = [names[index], gathered], "b"
        else:
            names[index] = gathered
    shifted: Expression = ("mul", x, factor)
    return s.map(node.name, shifted if left else ("floor", shifted), *names)
