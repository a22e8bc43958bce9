"""Operators that keep or part as many elements as the input decides, by those that are known of such rows."""

from __future__ import annotations

import numpy as np
import onnx

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.counted_rows import counts, shaping
from kernels.frontend.onnx.counted_rows.rules import elementwise
from kernels.frontend.onnx.extent import Count, Extent
from kernels.frontend.onnx.nodes import Nodes
from kernels.frontend.onnx.operator import AXES, Operator
from kernels.frontend.onnx.operators import parts
from kernels.frontend.onnx.steps import Steps


def compress(n: Nodes) -> None:
    """Choose by a computed condition: the rows that NonZero finds."""
    x, rank = n.node.input(0), len(n.shape(n.node.input(0)))
    axis = n.attribute("axis", None)
    if axis is None:
        x, axis = n.reshape(x, n.store([-1])), 0
    axis = n.node.axis(axis, max(rank, 1))
    condition = n.node.input(1)
    if len(n.shape(condition)) != 1:
        n.node.reject(f"its condition has shape {n.shape(condition)}; expected one axis")
    if (given := n.shape(condition)[0]) > n.shape(x)[axis]:
        n.node.reject(f"its condition has {given} elements for {n.shape(x)[axis]} along axis {axis}")
    found = n.squeeze(n.non_zero(condition), n.store([0]))
    n.end(n.gather(x, found, axis=axis))


_NOTHING: Extent = 0


def split(n: Nodes) -> None:
    """Divide by computed sizes or counts, like a mixture of experts its rows: each part is taken from where the one
    before ends, with room for all. The last has as many rows as the others leave, so that joined again they are all."""
    x, sizes, shape = n.node.input(0), n.node.input(1), n.shape(n.node.input(0))
    axis = n.node.axis(n.attribute("axis", 0), len(shape))
    if n.shape(sizes) != (len(n.node.outputs),):
        n.node.reject(f"sizes of shape {n.shape(sizes)} for {len(n.node.outputs)} outputs")
    if shape[axis] < 2:  # also a first axis of 0 elements, which is taken for an open one
        n.node.reject(f"{shape[axis]} element along axis {axis} is not divided by computed sizes")
    if axis in n.to.counts.get(x, {}):
        n.node.reject(f"how many elements {x!r} has along axis {axis} depends on the model's input")
    known, before = n.to.extents.get(sizes), _NOTHING
    none, all_, last = n.store(0), n.store(shape[axis]), n.store(shape[axis] - 1)
    ends, every = n.cum_sum(sizes, n.store(0)), n.store(np.arange(shape[axis]))
    for index in range(len(n.node.outputs)):
        place = n.store([index]), n.store([index + 1])
        size = n.clip(n.slice(sizes, *place), none, all_)
        count: Extent = Count(size, 0, shape[axis]) if known is None else known[index]
        if known is None and index == len(n.node.outputs) - 1:
            count = shape[axis] - before
        before = before + count
        if n.wants(index):
            start = n.sub(n.slice(ends, *place), size)
            part = n.gather(x, n.min(n.add(start, every), last), axis=axis)
            if isinstance(count, Count):
                n.to.counts.setdefault(part, {})[axis] = count
            n.end(part, index)


def unique(n: Nodes) -> None:
    """Find the elements of a flat tensor in rising order: where neighbours of the sorted elements differ, a new one
    begins."""
    x, shape = n.node.input(0), n.shape(n.node.input(0))
    if not n.attribute("sorted", 1):
        n.node.reject("only unique elements in rising order are supported (sorted = 1)")
    if n.attribute("axis", None) is not None and len(shape) > 1:
        n.node.reject("only unique elements of a flat tensor are supported, not slices along an axis")
    kind = n.to.type_of(x)
    flat = n.reshape(x, n.store([-1]))
    (size,) = n.shape(flat)
    number = n.cast(flat, to=onnx.TensorProto.FLOAT)
    ordered, order = n.several("top_k", 2, number, n.store([size]), axis=0, largest=0)
    new = n.store([True], np.bool_)
    if size > 1:
        later = n.slice(ordered, n.store([1]), n.store([size]))
        before = n.slice(ordered, n.store([0]), n.store([size - 1]))
        new = n.concat(new, n.not_(n.equal(later, before)), axis=0)
    begins = n.squeeze(n.non_zero(new), n.store([0]))
    element = n.gather(ordered, begins, axis=0)
    n.end(element if kind == np.float32 else n.cast(element, to=onnx.helper.np_dtype_to_tensor_dtype(kind)))
    if n.wants(1):
        n.end(n.gather(order, begins, axis=0), 1)
    if not n.wants(2) and not n.wants(3):
        return
    whole = n.cast(new, to=onnx.TensorProto.INT64)
    group = n.sub(n.cum_sum(whole, n.store(0)), n.store([1]))
    if n.wants(2):
        back = n.several("top_k", 2, n.cast(order, to=onnx.TensorProto.FLOAT), n.store([size]), axis=0, largest=0)[1]
        n.end(n.gather(group, back, axis=0), 2)
    if n.wants(3):
        ones, none = n.store(np.ones(size), np.float32), n.store(np.zeros(size), np.float32)
        many = n.scatter_elements(none, group, ones, axis=0, reduction="add")
        counts = n.gather(many, n.gather(group, begins, axis=0), axis=0)
        n.end(n.cast(counts, to=onnx.TensorProto.INT64), 3)


def one_hot(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    indices, depth = s.operand(0), int(np.reshape(to.constant(node, 1), -1)[0])
    values, known = s.operand(2), s.value(s.operand(2))
    off, on = (s.slice(values, 0, k, k + 1) if known is None else known.reshape(2)[k] for k in (0, 1))
    shape = s.shape(indices)
    if depth < 1:
        node.damaged(f"depth is {depth}; expected at least 1")
    axis = node.axis(s.attribute("axis", -1), len(shape) + 1)
    to.reserve(node, 4 * depth)
    s.places(depth)
    wide = s.reshape(indices, (*shape[:axis], 1, *shape[axis:]))
    numbers = np.arange(depth, dtype=np.int32).reshape((-1,) + (1,) * (len(shape) - axis))
    place = ("select", ("less", "a", 0.0), ("add", "a", float(depth)), "a")
    s.end(s.map(("select", ("equal", place, "b"), "c", "d"), wide, numbers, on, off))


def trilu(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, k = s.operand(0), s.whole_numbers(1) or [0]
    mask = np.ones(s.shape(x)[-2:], np.bool_)
    mask = np.triu(mask, k[0]) if s.attribute("upper", 1) else np.tril(mask, k[0])
    s.end(s.map(("select", "b", "a", 0.0), x, mask))


def where(node: OnnxNode, to: Context) -> None:
    """One of two, which may be NaN where nothing is known."""
    s = Steps(node, to)
    names = [s.operand(index) for index in range(3)]
    for index, value in enumerate(map(s.value, names)):
        if value is not None and value.dtype.kind == "f" and np.isnan(value).any():
            names[index] = s.constant(value, nan=True)
    s.end(s.map(("select", "a", "b", "c"), *names))


def compress_by_constant(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, condition = s.operand(0), to.constant(node, 1)
    if condition.ndim != 1:
        node.damaged(f"its condition has shape {condition.shape}; expected one axis")
    places = np.flatnonzero(condition)
    if not places.size:
        node.reject("it keeps nothing")
    if "axis" in node.attributes:
        s.end(s.pick(x, node.axis(s.attribute("axis"), len(s.shape(x))), places))
    else:
        s.end(s.elements(x, places))


def _has_computed_sizes(node: OnnxNode, to: Context) -> bool:
    name = node.input(1)
    return name in to.extents or to.is_activation(name)


OPERATORS = (
    Operator(
        "Compress", import_=compress_by_constant, write=compress,
        writes=lambda node, to: node.input(1) not in to.constants,
    ),
    Operator("OneHot", import_=one_hot, rows=shaping.marked),
    Operator(
        "Split", operands=AXES, import_=parts.split, rows=shaping.divided, write=split, writes=_has_computed_sizes
    ),
    Operator("Trilu", import_=trilu),
    Operator("Unique", write=unique, most_times=4),
    Operator("Where", import_=where, rows=elementwise, follow=counts.by(counts.where)),
)  # fmt: skip
