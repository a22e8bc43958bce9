"""Numbers of rows that are known when a plan runs: whole numbers between two bounds, as expressions of others.

A tensor whose extent depends on the model's input is padded to its largest extent; the `Count` of an axis says how many
of its elements, the first ones, are valid. Exporters compute shapes of such extents (Shape, Gather, Concat, ...):
`fold` follows them as whole numbers of which some are counts, as long as only shapes are made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.folding import FOLDS
from kernels.frontend.onnx.general.steps import Steps


@dataclass(frozen=True)
class Count:
    """`expression`: the name of a tensor (1,) that holds the number, or (function, operand, operand) of counts and
    whole numbers; `least` and `most` are its bounds. Two are equal if they are computed in the same way."""

    expression: tuple[Any, ...] | str
    least: int
    most: int

    def __add__(self, other: Extent) -> Extent:
        if is_number(other, 0):
            return self
        return _of("add", self, other, _low(other) + self.least, _high(other) + self.most)

    __radd__ = __add__

    def __sub__(self, other: Extent) -> Extent:
        if other == self:
            return 0
        if is_number(other, 0):
            return self
        return _of("sub", self, other, self.least - _high(other), self.most - _low(other))

    def __rsub__(self, other: int) -> Extent:
        return _of("sub", int(other), self, other - self.most, other - self.least)

    def __mul__(self, other: Extent) -> Extent:
        if not isinstance(other, Count):
            if other in (0, 1):
                return self if other else 0
            base, times = factors(self)
            if len(times) == 1 and times[0] != self:
                return times[0] * (base * int(other))
        ends = [a * b for a in (self.least, self.most) for b in (_low(other), _high(other))]
        return _of("mul", self, other, min(ends), max(ends))

    __rmul__ = __mul__


Extent = int | Count


def is_number(extent: Any, number: int) -> bool:
    return not isinstance(extent, Count) and int(extent) == number


def _low(extent: Extent) -> int:
    return extent.least if isinstance(extent, Count) else int(extent)


def _high(extent: Extent) -> int:
    return extent.most if isinstance(extent, Count) else int(extent)


def _of(function: str, a: Extent, b: Extent, least: int, most: int) -> Count:
    a, b = (part if isinstance(part, Count) else int(part) for part in (a, b))
    return Count((function, a, b), least, most)


def smaller(a: Extent, b: Extent) -> Extent:
    if a == b or _high(a) <= _low(b):
        return a
    return b if _high(b) <= _low(a) else _of("min", a, b, min(_low(a), _low(b)), min(_high(a), _high(b)))


def larger(a: Extent, b: Extent) -> Extent:
    if a == b or _low(a) >= _high(b):
        return a
    return b if _low(b) >= _high(a) else _of("max", a, b, max(_low(a), _low(b)), max(_high(a), _high(b)))


def factors(extent: Extent) -> tuple[int, list[Count]]:
    """A whole number and the counts that it is multiplied by."""
    if not isinstance(extent, Count):
        return int(extent), []
    if isinstance(extent.expression, tuple) and extent.expression[0] == "mul":
        (a, first), (b, second) = (factors(part) for part in extent.expression[1:])
        return a * b, first + second
    return 1, [extent]


def most(extent: Extent) -> int:
    """The extent to which an axis is padded."""
    return max(0, _high(extent))


def number(s: Steps, extent: Extent) -> str:
    """The tensor (1,) that holds it."""
    if not isinstance(extent, Count):
        return s.constant(np.array([extent]))
    if isinstance(extent.expression, str):
        return extent.expression
    known = s.to.made
    if extent not in known:
        function, a, b = extent.expression
        s.places(most(extent))
        operands = [number(s, part) if isinstance(part, Count) else float(part) for part in (a, b)]
        known[extent] = s.map((function, "a", "b"), *operands)
    return known[extent]


def chosen(s: Steps, condition: str, a: Extent, b: Extent) -> Extent:
    """`a` where the tensor is true, else `b`."""
    if a == b:
        return a
    pair = [number(s, part) for part in (a, b)]
    found = s.map(("select", "a", "b", "c"), s.reshape(condition, (1,)), *pair)
    return Count(found, min(_low(a), _low(b)), max(_high(a), _high(b)))


def extents_of(to: Context, name: str) -> list[Extent]:
    """Of a tensor's axes."""
    shape = to.constants[name].shape if name in to.constants else to.shapes[name]
    counts = to.counts.get(name, {})
    return [counts.get(axis, extent) for axis, extent in enumerate(shape)]


def whole_numbers(to: Context, name: str) -> list[Extent] | None:
    """Content of a constant, or of whole numbers of which some are counts; None of what is computed otherwise."""
    values = to.extents.get(name, to.constants.get(name))
    return None if values is None else [each if isinstance(each, Count) else int(each) for each in values.reshape(-1)]


def fold(node: OnnxNode, to: Context) -> bool:
    """Follow a node that makes whole numbers of extents. False where it makes something else."""
    if node.op in ("Shape", "Size"):
        if (values := to.extents.get(node.input(0))) is not None:
            own = np.array(values.shape, object)
            return keep(node, to, own[_window(node)] if node.op == "Shape" else np.array(values.size, object))
        if node.input(0) not in to.counts:
            return False
        found = extents_of(to, node.input(0))
        if node.op == "Size":
            return keep(node, to, np.array(quotient(found, []), object))
        return keep(node, to, np.array(found, object)[_window(node)])
    if node.op not in _FOLDS or not any(name in to.extents for name in node.inputs):
        return False
    if any(name and name not in to.extents and name not in to.constants for name in node.inputs):
        return False
    read = [to.extents.get(name, to.constants.get(name)) for name in node.inputs]
    try:
        return keep(node, to, _FOLDS[node.op](node, read))
    except _Open:
        return False


def _window(node: OnnxNode) -> slice:
    return slice(node.attributes.get("start", 0), node.attributes.get("end"))


def keep(node: OnnxNode, to: Context, values: AnyArray) -> bool:
    """The result of a node; a constant where it has no counts."""
    if any(isinstance(each, Count) for each in values.reshape(-1)):
        to.extents[node.outputs[0]] = values
    else:
        kind = bool if any(isinstance(each, bool | np.bool_) for each in values.reshape(-1)) else np.int64
        to.constants[node.outputs[0]] = values.astype(kind)
    return True


def write_out(node: OnnxNode, to: Context, name: str) -> None:
    """The tensor of whole numbers of which some are counts, for nodes that compute with it."""
    s, values = Steps(node, to), to.extents[name]
    parts = [number(s, each) for each in values.reshape(-1)]
    made = s.reshape(s.concat(parts, 0), values.shape)
    to.add_shape(name, values.shape)
    to.nodes.append(s.alias(made, name))
    to.types[name] = np.dtype(np.int64)
    del to.extents[name]


class _Open(Exception):
    """What a node computes of counts is none."""


def _compared(decide: Callable[[Extent, Extent], bool | None]) -> Callable[[OnnxNode, list[Any]], AnyArray]:
    def each(a: Extent, b: Extent) -> bool:
        found = decide(a, b)
        if found is None:
            raise _Open
        return found

    return lambda _, values: _elementwise(each, *values)


def _elementwise(function: Callable[..., Any], *values: Any) -> AnyArray:
    return np.asarray(np.frompyfunc(function, len(values), 1)(*values), object)


def _equal(a: Extent, b: Extent) -> bool | None:
    if a == b:
        return True
    return False if _high(a) < _low(b) or _high(b) < _low(a) else None


def _less(a: Extent, b: Extent) -> bool | None:
    if _high(a) < _low(b):
        return True
    return False if _low(a) >= _high(b) else None


def _cast(node: OnnxNode, values: list[Any]) -> AnyArray:
    if node.attributes["to"] not in (6, 7):  # INT32, INT64
        raise _Open
    return np.asarray(values[0], object)


def _where(_: OnnxNode, values: list[Any]) -> AnyArray:
    if any(isinstance(each, Count) for each in np.reshape(values[0], -1)):
        raise _Open
    return _elementwise(lambda c, a, b: a if c else b, *values)


def _reduced(function: Callable[[Any, Any], Any]) -> Callable[[OnnxNode, list[Any]], AnyArray]:
    def whole(node: OnnxNode, values: list[Any]) -> AnyArray:
        if values[0].ndim > 1:
            raise _Open
        found = reduce(function, values[0].reshape(-1))
        return np.array([found] if node.attributes.get("keepdims", 1) and values[0].ndim else found, object)

    return whole


def _folded(op: str) -> Callable[[OnnxNode, list[Any]], AnyArray]:
    def objects(node: OnnxNode, values: list[Any]) -> AnyArray:
        if any(isinstance(each, Count) for value in values[1:] if value is not None for each in np.reshape(value, -1)):
            raise _Open  # places that are counts
        return np.asarray(FOLDS[op](node, [np.asarray(values[0], object), *values[1:]]), object)

    return objects


_FOLDS: Mapping[str, Callable[[OnnxNode, list[Any]], AnyArray]] = {
    **{op: _folded(op) for op in ("Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")},
    "Add": lambda _, v: _elementwise(lambda a, b: a + b, *v),
    "Cast": _cast,
    "Concat": lambda node, v: np.concatenate([np.asarray(each, object) for each in v], node.attributes["axis"]),
    "Equal": _compared(_equal),
    "Greater": _compared(lambda a, b: _less(b, a)),
    "Less": _compared(_less),
    "Max": lambda _, v: reduce(lambda a, b: _elementwise(larger, a, b), v),
    "Min": lambda _, v: reduce(lambda a, b: _elementwise(smaller, a, b), v),
    "Mul": lambda _, v: _elementwise(lambda a, b: a * b, *v),
    "ReduceMax": _reduced(larger),
    "ReduceMin": _reduced(smaller),
    "ReduceProd": _reduced(lambda a, b: a * b),
    "ReduceSum": _reduced(lambda a, b: a + b),
    "Sub": lambda _, v: _elementwise(lambda a, b: a - b, *v),
    "Where": _where,
}


def quotient(of: list[Extent], by: list[Extent]) -> Extent:
    """The product of these extents, divided by the product of those. Raises ValueError where that is no extent."""
    (top, counts), (bottom, less) = (_product(part) for part in (of, by))
    for count in less:
        counts.remove(count)  # ValueError where it is not there
    if not bottom or top % bottom:
        raise ValueError(f"{top} is no multiple of {bottom}")
    found: Extent = top // bottom
    for count in counts:
        found = count * found
    return found


def _product(extents: list[Extent]) -> tuple[int, list[Count]]:
    parts = [factors(extent) for extent in extents]
    return prod(base for base, _ in parts), [count for _, counts in parts for count in counts]
