"""Element types of tensors, and which one each canonical operation (`graph.py`) gives.

A graph's `types` bind; `output_type` derives one where nothing says it. A node that writes another type than that
converts its result, as ONNX's Cast does; behind `in_types` its attribute `type` says so, and its copies keep it.
Values are computed in the widest type of the operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .expressions import BITS, LETTERS, Expression

if TYPE_CHECKING:
    from .graph import Node

ElementType = Literal[
    "bool", "i4", "u4", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64",
    "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "bf16", "f16", "f32", "f64",
]  # fmt: skip
"""They are sorted from the narrowest to the widest; some stand at the border of a model only."""

_ORDER: tuple[ElementType, ...] = get_args(ElementType)
_WORDS = {"bf": "bfloat", "f8": "float8_", "i": "int", "u": "uint", "f": "float", "b": "b"}
_KEPT = ("take", "concat", "reshape", "transpose", "slice", "gather", "pad", "resize", "relu", "clip", "max_pool")
_SUMS = ("add", "mul", "dense", "matmul", "conv", "im2col")
_MOST = 2.0**63
_REDUCED = ("max", "min")
_TRUTHS = ("less", "equal")
_WHOLE = ("add", "sub", "mul", "neg", "min", "max", "abs", "floor", "round")
"""Functions that give whole numbers of whole numbers; the first four of them may give wider ones."""


def _numpy(kind: ElementType) -> np.dtype[Any]:
    word = next(word for word in _WORDS if kind.startswith(word))
    name = _WORDS[word] + kind.removeprefix(word)
    return np.dtype(getattr(ml_dtypes, name, name))


_NUMPY: dict[ElementType, np.dtype[Any]] = {kind: _numpy(kind) for kind in _ORDER}
_OF_NUMPY: dict[np.dtype[Any], ElementType] = {dtype: kind for kind, dtype in _NUMPY.items()}


def to_numpy(kind: ElementType) -> np.dtype[Any]:
    """Return NumPy's type of the same numbers."""
    return _NUMPY[kind]


def of_numpy(dtype: np.dtype[Any]) -> ElementType:
    """Return the element type of a NumPy array's elements. Raises KeyError where there is none."""
    return _OF_NUMPY[np.dtype(dtype)]


def as_type(array: npt.NDArray[Any], kind: ElementType) -> npt.NDArray[Any]:
    """Return numbers in a type: whole ones start again past its ends, and stay as they are where some are infinite or
    NaN; those of types that NumPy has not are in fp32 or int8."""
    dtype = to_numpy(kind) if to_numpy(kind).isbuiltin == 1 else np.dtype(np.int8 if is_whole(kind) else np.float32)
    if array.dtype == dtype or (is_whole(kind) and not np.isfinite(array).all()):
        return array
    if array.dtype.kind == "f" and dtype.kind in "iu":
        array = array.astype(np.int64)
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def is_whole(kind: ElementType) -> bool:
    """Return whether a type holds whole numbers or conditions."""
    return kind[0] in "biu" and kind != "bf16"


def widest(kinds: Iterable[ElementType]) -> ElementType:
    """Return the type that holds the numbers of all; conditions are the narrowest."""
    return max(kinds, key=_ORDER.index)


def output_type(node: Node, types: Mapping[str, ElementType]) -> ElementType:
    """Return the type that a canonical node gives: the one that it says, or what follows from its operands' types."""
    if "type" in node.attributes:
        kind: ElementType = node.attributes["type"]
        return kind
    given = [types[name] for name in node.inputs if name]
    if node.op == "map":
        return _computed(expression_type(node.attributes["expression"], given))
    if node.op == "reduce" and "arg" in node.attributes["kind"]:
        return "i64"
    if node.op == "suppress" or (node.op == "sort" and node.attributes["gives"] == "places"):
        return "i64"
    if node.op in ("take", "gather", "put_rows"):
        return given[0]
    if node.op == "sort" or node.op in _KEPT or (node.op == "reduce" and node.attributes["kind"] in _REDUCED):
        return widest(given)
    if node.op in _SUMS or (node.op == "reduce" and node.attributes["kind"] in ("sum", "prod")):
        kind = widest(given)
        return widest((kind, "i32")) if is_whole(kind) else _computed(kind)
    return "f32"


def expression_type(expression: Expression, given: Sequence[ElementType]) -> ElementType:
    """Return the type in which an expression of operands comes out, before a node stores it as its own."""
    if isinstance(expression, str):
        return given[LETTERS.index(expression)]
    if not isinstance(expression, tuple):
        return _number_type(expression)
    function, *arguments = expression
    kinds = [expression_type(argument, given) for argument in arguments]
    if function in _TRUTHS:
        return "bool"
    if function in BITS:
        return widest(kinds[:1] if function.startswith("shift") else kinds)
    if function not in (*_WHOLE, "select"):
        return "f32"
    kind = widest(kinds[1:] if function == "select" else kinds)
    grows = function in _WHOLE[:4] and not (function == "mul" and kind == "bool")
    return widest((kind, "i32")) if is_whole(kind) and (grows or kind == "i4") else kind


def is_whole_valued(part: Expression, given: Sequence[ElementType]) -> bool:
    """Return whether an expression, computed in floating point, has whole numbers only."""
    if isinstance(part, str):
        return is_whole(given[LETTERS.index(part)])
    if not isinstance(part, tuple):
        return float(part).is_integer()
    if part[0] in ("floor", "round", *_TRUTHS):
        return True
    values = part[2:] if part[0] == "select" else part[1:]
    return part[0] in (*_WHOLE, "select") and all(is_whole_valued(each, given) for each in values)


def _number_type(number: float) -> ElementType:
    if number in (0.0, 1.0):
        return "bool"
    return "i4" if float(number).is_integer() and abs(number) < _MOST else "f32"


def derived(
    nodes: Iterable[Node], known: Mapping[str, ElementType], inputs: Iterable[str], constants: Mapping[str, Any]
) -> dict[str, ElementType]:
    """Return the types of all tensors: those that are known; else fp32 of inputs, of constants the arrays' own, and of
    results what `output_type` says."""
    types: dict[str, ElementType] = dict.fromkeys(inputs, "f32")
    types |= {name: of_numpy(array.dtype) for name, array in constants.items() if name not in known}
    types |= known
    for node in nodes:
        for name in node.outputs:
            if name not in types:
                types[name] = output_type(node, types)
    return types


def _computed(kind: ElementType) -> ElementType:
    """Return the type of results, of which those of narrower floating point are computed in fp32."""
    return kind if is_whole(kind) else "f32"
