"""Expressions: what a `map` node computes of each element, as functions of operands and numbers.

An expression is an operand (`a` to `d`), a number, or (function, argument, ...) of expressions. Functions are
the few that every backend has (`FUNCTIONS`); the others are made of them (`compositions.py`). What each means is in
`kernels/reference/expressions.py` (`round`, `float16` and `bfloat16`: of what fp32 makes of it, since a step is no
rounding error); the texts of kernels in `kernels/lower/gpu/expression_text.py`; the agent's are in
`device_agent/src/backends/cpu/elements/functions.inc`. Truth is 1, falsehood 0; whatever is not 0 is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from kernels.errors import ModelError

Expression = str | float | tuple[Any, ...]
LETTERS = "abcd"
"""Names of operands."""


@dataclass(frozen=True)
class Function:
    """A function of one to three numbers."""

    code: int
    """The code that the agent is told."""
    arity: int


FUNCTIONS: dict[str, Function] = {
    "add": Function(0, 2),
    "sub": Function(1, 2),
    "mul": Function(2, 2),
    "div": Function(3, 2),
    "min": Function(4, 2),
    "max": Function(5, 2),
    "pow": Function(6, 2),
    "less": Function(7, 2),
    "equal": Function(8, 2),
    "select": Function(9, 3),
    "neg": Function(10, 1),
    "abs": Function(11, 1),
    "exp": Function(12, 1),
    "log": Function(13, 1),
    "sqrt": Function(14, 1),
    "floor": Function(15, 1),
    "sin": Function(16, 1),
    "cos": Function(17, 1),
    "tan": Function(18, 1),
    "asin": Function(19, 1),
    "acos": Function(20, 1),
    "atan": Function(21, 1),
    "tanh": Function(22, 1),
    "erf": Function(23, 1),
    "round": Function(24, 1),
    "float16": Function(27, 1),
    "bfloat16": Function(28, 1),
}
BITS: dict[str, Function] = {
    "shift_left": Function(30, 2),
    "shift_right": Function(31, 2),
    "bit_and": Function(32, 2),
    "bit_or": Function(33, 2),
    "bit_xor": Function(34, 2),
    "bit_not": Function(35, 1),
}
"""Functions of whole numbers alone."""
MAX_OPERANDS, MAX_NUMBERS, MAX_INSTRUCTIONS = len(LETTERS), 16, 32


@dataclass(frozen=True)
class Instruction:
    """One function of registers: operands first, then numbers from `MAX_OPERANDS` on, then results, in their order."""

    function: str
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """An expression in steps; the last result is its value. What occurs twice is computed once."""

    numbers: tuple[float, ...]
    instructions: tuple[Instruction, ...]


FIRST_RESULT = MAX_OPERANDS + MAX_NUMBERS


def program_of(expression: Expression) -> Program:
    """The steps of an expression. Raises ModelError where it is too long."""
    numbers: dict[str, int] = {}
    steps: dict[Instruction, int] = {}
    if not isinstance(expression, tuple):
        expression = ("add", expression, 0.0)
    _register(expression, numbers, steps)
    if len(numbers) > MAX_NUMBERS or len(steps) > MAX_INSTRUCTIONS:
        raise ModelError(f"an expression of {len(steps)} functions and {len(numbers)} numbers is too long")
    return Program(
        tuple(int(key) if key.lstrip("-").isdigit() else float.fromhex(key) for key in numbers), tuple(steps)
    )


def _register(part: Expression, numbers: dict[str, int], steps: dict[Instruction, int]) -> int:
    """Return the register of a part's result; add the steps that it needs and that are not there yet."""
    if isinstance(part, tuple):
        step = Instruction(part[0], tuple(_register(argument, numbers, steps) for argument in part[1:]))
        return FIRST_RESULT + steps.setdefault(step, len(steps))
    if isinstance(part, str):
        return LETTERS.index(part)
    key = str(part) if isinstance(part, int) and float(part) != part else float(part).hex()
    return MAX_OPERANDS + numbers.setdefault(key, len(numbers))


def number_of(array: npt.NDArray[Any]) -> float:
    """Return the number of an array that has one; a whole one that is no float stays whole."""
    value = array.reshape(()).item()
    return value if isinstance(value, int) and float(value) != value else float(value)


def operands_of(expression: Expression) -> Iterator[str]:
    """The operands that it reads, as often as it reads them."""
    parts = [expression]
    while parts:
        part = parts.pop()
        if isinstance(part, tuple):
            parts += part[:0:-1]
        elif isinstance(part, str):
            yield part


def with_operands(expression: Expression, by: Mapping[str, Expression]) -> Expression:
    """The expression of other operands, or of expressions in their place."""
    if isinstance(expression, tuple):
        return (expression[0], *(with_operands(part, by) for part in expression[1:]))
    return by[expression] if isinstance(expression, str) else expression


def check_expression(expression: Expression, operands: int) -> None:
    """Raise ModelError for an unknown function, a wrong number of arguments, or an operand that is not there."""
    if isinstance(expression, tuple):
        name, *arguments = expression
        known = {**FUNCTIONS, **BITS}
        if name not in known or len(arguments) != known[name].arity:
            raise ModelError(f"there is no function {name} of {len(arguments)}; there are {', '.join(known)}")
        for argument in arguments:
            check_expression(argument, operands)
    elif isinstance(expression, str) and expression not in LETTERS[:operands]:
        raise ModelError(f"operand {expression} of {operands} is not there")
