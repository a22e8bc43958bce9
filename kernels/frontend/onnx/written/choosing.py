"""Operators that keep or part as many elements as the input decides, by those that are known of such rows."""

from __future__ import annotations

import numpy as np
import onnx

from kernels.frontend.onnx.general.padded.extent import Count, Extent

from .nodes import Nodes


def compress(n: Nodes) -> None:
    """Choose by a computed condition: the rows that NonZero finds."""
    x, rank = n.node.input(0), len(n.shape(n.node.input(0)))
    axis = n.attribute("axis", None)
    if axis is None:
        x, axis = n.add("Reshape", x, n.store([-1])), 0
    axis = n.node.axis(axis, max(rank, 1))
    condition = n.node.input(1)
    if len(n.shape(condition)) != 1:
        n.node.reject(f"its condition has shape {n.shape(condition)}; expected one axis")
    if (given := n.shape(condition)[0]) > n.shape(x)[axis]:
        n.node.reject(f"its condition has {given} elements for {n.shape(x)[axis]} along axis {axis}")
    found = n.add("Squeeze", n.add("NonZero", condition), n.store([0]))
    n.end(n.add("Gather", x, found, axis=axis))


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
    ends, every = n.add("CumSum", sizes, n.store(0)), n.store(np.arange(shape[axis]))
    for index in range(len(n.node.outputs)):
        place = n.store([index]), n.store([index + 1])
        size = n.add("Clip", n.add("Slice", sizes, *place), none, all_)
        count: Extent = Count(size, 0, shape[axis]) if known is None else known[index]
        if known is None and index == len(n.node.outputs) - 1:
            count = shape[axis] - before
        before = before + count
        if n.wants(index):
            start = n.add("Sub", n.add("Slice", ends, *place), size)
            part = n.add("Gather", x, n.add("Min", n.add("Add", start, every), last), axis=axis)
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
    flat = n.add("Reshape", x, n.store([-1]))
    (size,) = n.shape(flat)
    number = n.add("Cast", flat, to=onnx.TensorProto.FLOAT)
    ordered, order = n.several("TopK", 2, number, n.store([size]), axis=0, largest=0)
    new = n.store([True], np.bool_)
    if size > 1:
        later = n.add("Slice", ordered, n.store([1]), n.store([size]))
        before = n.add("Slice", ordered, n.store([0]), n.store([size - 1]))
        new = n.add("Concat", new, n.add("Not", n.add("Equal", later, before)), axis=0)
    begins = n.add("Squeeze", n.add("NonZero", new), n.store([0]))
    element = n.add("Gather", ordered, begins, axis=0)
    n.end(element if kind == np.float32 else n.add("Cast", element, to=onnx.helper.np_dtype_to_tensor_dtype(kind)))
    if n.wants(1):
        n.end(n.add("Gather", order, begins, axis=0), 1)
    if not n.wants(2) and not n.wants(3):
        return
    whole = n.add("Cast", new, to=onnx.TensorProto.INT64)
    group = n.add("Sub", n.add("CumSum", whole, n.store(0)), n.store([1]))
    if n.wants(2):
        back = n.several(
            "TopK", 2, n.add("Cast", order, to=onnx.TensorProto.FLOAT), n.store([size]), axis=0, largest=0
        )[1]
        n.end(n.add("Gather", group, back, axis=0), 2)
    if n.wants(3):
        ones, none = n.store(np.ones(size), np.float32), n.store(np.zeros(size), np.float32)
        many = n.add("ScatterElements", none, group, ones, axis=0, reduction="add")
        counts = n.add("Gather", many, n.add("Gather", group, begins, axis=0), axis=0)
        n.end(n.add("Cast", counts, to=onnx.TensorProto.INT64), 3)
