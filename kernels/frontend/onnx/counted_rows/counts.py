"""Numbers of rows that are known when a plan runs: whole numbers between two bounds, as expressions of others.

A tensor whose extent depends on the model's input is padded to its largest extent; the `Count` of an axis says how many
of its elements, the first ones, are valid. Exporters compute shapes of such extents by nodes of their own:
an operator's `follow` has them as whole numbers of which some are counts, as long as only shapes are made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.extent import Count, Extent, high, low, most, quotient
from kernels.frontend.onnx.steps import Steps

CountFold = Callable[[OnnxNode, list[Any]], AnyArray]
"""Computes an array of whole numbers and counts."""


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
    return Count(found, min(low(a), low(b)), max(high(a), high(b)))


def extents_of(to: Context, name: str) -> list[Extent]:
    """Return the extents of a tensor's axes."""
    shape = to.constants[name].shape if name in to.constants else to.shapes[name]
    counts = to.counts.get(name, {})
    return [counts.get(axis, extent) for axis, extent in enumerate(shape)]


def whole_numbers(to: Context, name: str) -> list[Extent] | None:
    """Content of a constant, or of whole numbers of which some are counts; None of what is computed otherwise."""
    values = to.extents.get(name, to.constants.get(name))
    return None if values is None else [each if isinstance(each, Count) else int(each) for each in values.reshape(-1)]


def by(compute: CountFold) -> Callable[[OnnxNode, Context], bool]:
    """Make what follows an operator of such numbers. False where it makes something else."""

    def follow(node: OnnxNode, to: Context) -> bool:
        if not any(name in to.extents for name in node.inputs):
            return False
        if any(name and name not in to.extents and name not in to.constants for name in node.inputs):
            return False
        try:
            return keep(node, to, compute(node, [to.extents.get(name, to.constants.get(name)) for name in node.inputs]))
        except _Open:
            return False

    return follow


def of_each(function: Callable[..., Any]) -> Callable[[OnnxNode, Context], bool]:
    """Follow an operator that computes each number by itself, of any number of operands."""
    return by(lambda _, values: reduce(partial(_elementwise, function), values))


def shape(node: OnnxNode, to: Context) -> bool:
    found = _extents(node, to)
    return found is not None and keep(
        node, to, found[slice(node.attributes.get("start", 0), node.attributes.get("end"))]
    )


def size(node: OnnxNode, to: Context) -> bool:
    found = _extents(node, to)
    return found is not None and keep(node, to, np.array(quotient([*found], []), object))


def _extents(node: OnnxNode, to: Context) -> AnyArray | None:
    """Extents of an input of which some are counts, or that holds such; None of any other."""
    name = node.input(0)
    if (values := to.extents.get(name)) is not None:
        return np.array(values.shape, object)
    return np.array(extents_of(to, name), object) if name in to.counts else None


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
    first, *_ = each = [*values.reshape(-1)]
    further = [extent - first for extent in each]
    if any(isinstance(extent, Count) for extent in further):
        whole = s.concat([number(s, extent) for extent in each], 0)
    else:  # a range, or one number
        whole = s.map(("add", "a", "b"), number(s, first), np.array(further))
    made = s.reshape(whole, values.shape)
    to.add_shape(name, values.shape)
    to.nodes.append(s.alias(made, name))
    to.types[name] = np.dtype(np.int64)
    del to.extents[name]


class _Open(Exception):
    """The result of a node of counts is no count."""


def _compared(decide: Callable[[Extent, Extent], bool | None]) -> Callable[[OnnxNode, Context], bool]:
    def each(a: Extent, b: Extent) -> bool:
        found = decide(a, b)
        if found is None:
            raise _Open
        return found

    return of_each(each)


def _elementwise(function: Callable[..., Any], *values: Any) -> AnyArray:
    return np.asarray(np.frompyfunc(function, len(values), 1)(*values), object)


def _equal(a: Extent, b: Extent) -> bool | None:
    if a == b:
        return True
    return False if high(a) < low(b) or high(b) < low(a) else None


def _less(a: Extent, b: Extent) -> bool | None:
    if high(a) < low(b):
        return True
    return False if low(a) >= high(b) else None


equal, less, greater = _compared(_equal), _compared(_less), _compared(lambda a, b: _less(b, a))


def cast(node: OnnxNode, values: list[Any]) -> AnyArray:
    if node.attributes["to"] not in (6, 7):  # INT32, INT64
        raise _Open
    return np.asarray(values[0], object)


def where(_: OnnxNode, values: list[Any]) -> AnyArray:
    if any(isinstance(each, Count) for each in np.reshape(values[0], -1)):
        raise _Open
    return _elementwise(lambda c, a, b: a if c else b, *values)


def reduced(function: Callable[[Any, Any], Any]) -> Callable[[OnnxNode, Context], bool]:
    """Follow an operator that reduces numbers."""

    def whole(node: OnnxNode, values: list[Any]) -> AnyArray:
        if values[0].ndim > 1:
            raise _Open
        found = reduce(function, values[0].reshape(-1))
        return np.array([found] if node.attributes.get("keepdims", 1) and values[0].ndim else found, object)

    return by(whole)


def placed(fold: CountFold) -> Callable[[OnnxNode, Context], bool]:
    """Follow an operator that chooses and orders elements of its first input, as its `fold` does."""

    def objects(node: OnnxNode, values: list[Any]) -> AnyArray:
        if any(isinstance(each, Count) for value in values[1:] if value is not None for each in np.reshape(value, -1)):
            raise _Open  # places that are counts
        return np.asarray(fold(node, [np.asarray(values[0], object), *values[1:]]), object)

    return by(objects)


def joined(node: OnnxNode, values: list[Any]) -> AnyArray:
    return np.concatenate([np.asarray(each, object) for each in values], node.attributes["axis"])
