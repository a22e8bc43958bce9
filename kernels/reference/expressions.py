"""The meaning of the functions of expressions (`kernels/ir/expressions.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.ir.expressions import LETTERS, Expression
from kernels.ir.programs import WRAPS

AnyArray = npt.NDArray[np.floating[Any]]


def _bfloat16(x: npt.ArrayLike) -> AnyArray:
    """Round to the nearest number of the upper 16 bits of fp32; of two the even one."""
    single = np.atleast_1d(np.asarray(x, np.float32))
    bits = single.view(np.uint32)
    nearest = (bits + (0x7FFF + ((bits >> 16) & 1)).astype(np.uint32)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(single), single, nearest.view(np.float32)).reshape(np.shape(x))


MEANINGS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "pow": np.power,
    "less": lambda a, b: np.less(a, b).astype(np.float64),
    "equal": lambda a, b: np.equal(a, b).astype(np.float64),
    "select": lambda c, a, b: np.where(c != 0, a, b),
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "tanh": np.tanh,
    "erf": np.vectorize(erf, otypes=[np.float64]),
    "round": lambda x: np.rint(np.asarray(x, np.float32)),
    "float16": lambda x: np.asarray(x, np.float32).astype(np.float16),
    "bfloat16": _bfloat16,
}


def number_as(number: float, dtype: np.dtype[Any]) -> Any:
    """Return a number of a type, or the one at the end of its range."""
    if dtype.kind == "f":
        return dtype.type(number)
    limits = np.iinfo(dtype)
    return dtype.type(int(min(max(number, limits.min), limits.max)))


def _power(a: AnyArray, b: AnyArray) -> AnyArray:
    ones = np.where(b % 2 == 0, 1, a) * (np.abs(a) == 1)
    return np.where(b < 0, ones, np.power(a, np.maximum(b, 0)))


def _shift_right(a: AnyArray, by: AnyArray) -> AnyArray:
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    shifted: AnyArray = np.right_shift(a.astype(unsigned), by.astype(unsigned)).astype(a.dtype)
    return shifted


def _last_bits(kind: str) -> Callable[[AnyArray], AnyArray]:
    return lambda a: a.astype(kind).astype(a.dtype)


WHOLE: dict[str, Callable[..., Any]] = {
    "div": lambda a, b: np.floor_divide(a - np.fmod(a, b), b),
    "remainder": np.fmod,
    "pow": _power,
    "shift_left": np.left_shift,
    "shift_right": _shift_right,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "bit_not": np.bitwise_not,
    **{kind: _last_bits(kind) for kind in WRAPS.values()},
    "less": lambda a, b: np.less(a, b).astype(np.int32),
    "equal": lambda a, b: np.equal(a, b).astype(np.int32),
}
"""Functions that are computed otherwise of whole numbers."""


def compute(expression: Expression, operands: Sequence[AnyArray], shape: tuple[int, ...]) -> AnyArray:
    """Each element of a result of this shape, to which the operands broadcast."""
    dtype = operands[0].dtype if operands else np.dtype(np.float64)
    with np.errstate(all="ignore"):
        found = np.asarray(_value(expression, operands, dtype, {}))
        return np.broadcast_to(found if dtype.kind in "iu" else found.astype(dtype), shape)


def _value(part: Expression, operands: Sequence[AnyArray], dtype: np.dtype[Any], known: dict[Expression, Any]) -> Any:
    """Return the value of a part; `known`: those that were computed before."""
    if isinstance(part, str):
        return operands[LETTERS.index(part)]
    if not isinstance(part, tuple):
        return number_as(part, dtype)
    if part not in known:
        meaning = (MEANINGS if dtype.kind == "f" else MEANINGS | WHOLE)[part[0]]
        known[part] = meaning(*(_value(each, operands, dtype, known) for each in part[1:]))
    return known[part]
