"""Operators that only choose, copy and order elements."""

from __future__ import annotations

from functools import reduce
from math import isfinite, prod

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.ir.expressions import Expression, number_of
from kernels.ir.shapes import Shape

from .steps import Steps


def transpose(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x = s.operand(0)
    s.end(s.transpose(x, node.attributes.get("perm", range(len(s.shape(x)))[::-1])))


def slice_(node: OnnxNode, to: Context) -> None:
    """Slice in any steps; an empty result is a constant."""
    s = Steps(node, to)
    x = s.operand(0)
    shape = s.shape(x)
    starts, ends = s.whole_numbers(1, "starts") or [], s.whole_numbers(2, "ends") or []
    given = s.whole_numbers(3, "axes")
    axes = node.distinct_axes(given if given is not None else range(len(starts)), len(shape))
    steps = s.whole_numbers(4) or [1] * len(axes)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise ModelError(f"node {node.name!r} (Slice): {starts}, {ends}, {axes}, {steps} do not fit each other")
    chosen = {
        axis: range(shape[axis])[start : None if step < 0 and end < -shape[axis] else end : step]
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    }
    if not all(chosen.values()):
        kept = [len(chosen.get(axis, range(extent))) for axis, extent in enumerate(shape)]
        to.constants[node.outputs[0]] = np.zeros(kept, to.type_of(x))
        return
    for axis, places in chosen.items():
        x = s.pick(x, axis, places)
    s.end(s.tensor(x))


def gather(node: OnnxNode, to: Context) -> None:
    """Gather by constant indices, or by computed ones."""
    s = Steps(node, to)
    x, indices = s.operand(0), s.operand(1)
    shape, places = s.shape(x), s.value(indices)
    axis = node.axis(s.attribute("axis", 0), len(shape))
    if places is None:
        if _is_computed(to, indices):
            s.places(shape[axis])
        s.end(s.gather(x, indices, axis))
        return
    flat = [node.axis(int(place), shape[axis]) for place in places.reshape(-1)]
    taken = s.pick(x, axis, flat)
    s.end(s.reshape(taken, (*shape[:axis], *places.shape, *shape[axis + 1 :])))


def _is_computed(to: Context, tensor: str) -> bool:
    """Return whether it is more than an input of the model, in another shape, which stays as it is given."""
    writers = {name: node for node in to.nodes for name in node.outputs}
    while tensor in writers and writers[tensor].op == "reshape":
        tensor = writers[tensor].inputs[0]
    return tensor in writers


def gather_elements(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, indices = s.operand(0), s.operand(1)
    shape, places = s.shape(x), s.value(indices)
    axis = node.axis(s.attribute("axis", 0), len(shape))
    if places is not None:
        s.end(s.elements(x, along(node, shape, places, axis)))
        return
    others = along(node, shape, np.zeros(s.shape(indices), np.int64), axis)
    s.end(_by_number(s, x, s.map(place(prod(shape[axis + 1 :]), shape[axis]), indices, others)))


def place(stride: int, extent: int) -> Expression:
    """b elements on, a steps of this stride; negative ones count from the end."""
    return ("add", "b", ("mul", ("select", ("less", "a", 0.0), ("add", "a", float(extent)), "a"), float(stride)))


def _by_number(s: Steps, x: str, numbers: str) -> str:
    """Single elements by computed numbers, row-major, in the numbers' shape."""
    size = prod(s.shape(x))
    s.places(size)
    return s.gather(s.reshape(x, (size,)), numbers, 0)


def element_numbers(shape: Shape) -> AnyArray:
    """The number of each element, row-major."""
    return np.arange(prod(shape)).reshape(shape)


def inside(node: OnnxNode, indices: AnyArray, extent: int) -> AnyArray:
    if np.any(indices < -extent) or np.any(indices >= extent):
        raise ModelError(f"node {node.name!r} ({node.op}): an index lies outside of {extent} elements")
    return np.where(indices < 0, indices + extent, indices)


def along(node: OnnxNode, shape: Shape, indices: AnyArray, axis: int) -> AnyArray:
    """Numbers of elements of which one coordinate is given, and the others are those of the index."""
    if indices.ndim != len(shape) or any(
        k != axis and wanted > extent for k, (wanted, extent) in enumerate(zip(indices.shape, shape, strict=True))
    ):
        raise ModelError(f"node {node.name!r} ({node.op}): indices of shape {indices.shape} do not fit {shape}")
    places: list[AnyArray] = list(np.indices(indices.shape))
    places[axis] = inside(node, indices, shape[axis])
    return np.asarray(element_numbers(shape)[tuple(places)])


def gather_nd(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, name = s.operand(0), s.operand(1)
    batch, shape, places = int(s.attribute("batch_dims", 0)), s.shape(x), s.shape(name)
    depth = places[-1]
    if batch + depth > len(shape) or shape[:batch] != places[:batch]:
        raise ModelError(f"node {node.name!r} ({node.op}): indices of shape {places} do not fit {shape}")
    indices = s.value(name)
    if indices is None:
        _gather_rows(s, x, name, batch)
        return
    numbers = element_numbers(shape)
    coordinates = [inside(node, indices[..., k], shape[batch + k]) for k in range(depth)]
    lead = np.indices(indices.shape[:-1])[:batch]
    s.end(s.elements(x, np.asarray(numbers[(*lead, *coordinates)])))


def _gather_rows(s: Steps, x: str, indices: str, batch: int) -> None:
    """GatherND by computed indices: each names a row of elements that lie behind each other."""
    shape, places = s.shape(x), s.shape(indices)
    depth, lead = places[-1], places[:-1]
    rows, row = shape[: batch + depth], shape[batch + depth :]
    pictures = np.arange(prod(shape[:batch])) * prod(rows[batch:])
    numbers = s.constant(pictures.reshape((*shape[:batch], *(1,) * (len(lead) - batch))))
    for k in range(depth):
        part = s.reshape(s.slice(indices, len(places) - 1, k, k + 1), lead)
        numbers = s.map(place(prod(rows[batch + k + 1 :]), rows[batch + k]), part, numbers)
    s.places(prod(rows))
    s.end(s.reshape(s.gather(s.reshape(x, (prod(rows), *row)), numbers, 0), (*lead, *row)))


def pad(node: OnnxNode, to: Context) -> None:
    """Any axes, in any mode, and cropped where a pad is negative."""
    s = Steps(node, to)
    x = s.operand(0)
    shape, mode = s.shape(x), str(s.attribute("mode", "constant"))
    pads = s.whole_numbers(1, "pads") or []
    chosen = s.whole_numbers(3)
    axes = list(range(len(shape))) if chosen is None else node.distinct_axes(chosen, len(shape))
    if len(pads) != 2 * len(axes):
        raise ModelError(f"node {node.name!r} ({node.op}): {len(pads)} pads for {len(axes)} axes; the model is damaged")
    more = dict(zip(axes, map(sum, zip(pads, pads[len(axes) :], strict=False)), strict=True))
    s.check_size([extent + more.get(axis, 0) for axis, extent in enumerate(shape)])
    value = 0.0
    if mode == "constant":
        value = number_of(to.constant(node, 2)) if s.has(2) else float(s.attribute("value", 0.0))
    tables = [np.arange(extent) for extent in shape]
    for k, axis in enumerate(axes):
        tables[axis] = _padded(shape[axis], pads[k], pads[len(axes) + k], mode)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    extents = [len(table) for table in tables]
    if isfinite(value):
        s.end(s.take(x, extents, tables, strides, value))
        return
    outside = [table < 0 if (table < 0).any() else np.zeros(1, np.bool_) for table in tables]
    mask = reduce(np.logical_or.outer, outside).astype(np.float32)
    s.end(s.map(("select", "b", "c", "a"), s.take(x, extents, tables, strides), mask, np.full(1, value, np.float32)))


def _padded(extent: int, begin: int, end: int, mode: str) -> AnyArray:
    places = np.arange(-begin, extent + end)
    if mode == "edge":
        return np.clip(places, 0, extent - 1)
    if mode == "wrap":
        return places % extent
    if mode == "reflect":
        period = max(1, 2 * (extent - 1))
        turned = places % period
        return np.minimum(turned, period - turned) if extent > 1 else np.zeros_like(places)
    return np.where((places < 0) | (places >= extent), -1, places)


def tile(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, repeats = s.operand(0), s.whole_numbers(1) or []
    shape = s.shape(x)
    if len(repeats) != len(shape) or min(repeats, default=1) < 1:
        raise ModelError(f"node {node.name!r} ({node.op}): repeats {repeats} do not fit {shape}")
    s.check_size([extent * times for extent, times in zip(shape, repeats, strict=True)])
    tables = [np.arange(extent * times) % extent for extent, times in zip(shape, repeats, strict=True)]
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    s.end(s.take(x, [len(table) for table in tables], tables, strides))


def expand(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, wanted = s.operand(0), s.whole_numbers(1) or []
    try:
        shape = tuple(int(extent) for extent in np.broadcast_shapes(s.shape(x), tuple(wanted)))
    except ValueError as e:
        raise ModelError(f"node {node.name!r} ({node.op}): {s.shape(x)} does not broadcast to {wanted}") from e
    s.end(s.expand(x, shape))


def concat(node: OnnxNode, to: Context) -> None:
    """Join activations and constants; an empty one adds nothing."""
    s = Steps(node, to)
    parts = [s.operand(index) for index in range(len(node.inputs))]
    parts = [part for part in parts if 0 not in s.shape(part)] or parts
    s.end(s.concat(parts, node.axis(s.attribute("axis"), len(s.shape(parts[0])))))


def depth_to_space(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, b = s.operand(0), int(s.attribute("blocksize"))
    n, c, h, w = _image(s, x)
    if b < 1 or c % (b * b):
        raise ModelError(f"node {node.name!r} ({node.op}): blocks of {b} do not divide {c} channels")
    by_column = str(s.attribute("mode", "DCR")) == "CRD"
    split = (n, c // b // b, b, b, h, w) if by_column else (n, b, b, c // b // b, h, w)
    turned = s.transpose(s.reshape(x, split), (0, 1, 4, 2, 5, 3) if by_column else (0, 3, 4, 1, 5, 2))
    s.end(s.reshape(turned, (n, c // b // b, h * b, w * b)))


def space_to_depth(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, b = s.operand(0), int(s.attribute("blocksize"))
    n, c, h, w = _image(s, x)
    if b < 1 or h % b or w % b:
        raise ModelError(f"node {node.name!r} ({node.op}): blocks of {b} do not divide {(h, w)}")
    by_column = str(s.attribute("mode", "DCR")) == "CRD"
    order = (0, 1, 3, 5, 2, 4) if by_column else (0, 3, 5, 1, 2, 4)
    turned = s.transpose(s.reshape(x, (n, c, h // b, b, w // b, b)), order)
    s.end(s.reshape(turned, (n, c * b * b, h // b, w // b)))


def _image(s: Steps, x: str) -> Shape:
    if len(s.shape(x)) != 4:
        raise ModelError(
            f"node {s.node.name!r} ({s.node.op}): input {x!r} has shape {s.shape(x)}; expected (N, C, H, W)"
        )
    return s.shape(x)


def reverse_sequence(node: OnnxNode, to: Context) -> None:
    """First steps of rows in reverse order, as many as lengths say; a computed length of more steps counts as all."""
    s = Steps(node, to)
    x, given = s.operand(0), s.operand(1)
    shape, lengths = s.shape(x), s.shape(given)
    time, batch = int(s.attribute("time_axis", 0)), int(s.attribute("batch_axis", 1))
    if {time, batch} != {0, 1} or len(shape) < 2 or lengths != (shape[batch],):
        raise ModelError(
            f"node {node.name!r} ({node.op}): lengths of shape {lengths} and axes {time}, {batch} do not fit {shape}"
        )
    known, places = s.value(given), list(np.indices(shape[:2]))
    if known is not None:
        length = known[places[batch]]
        places[time] = np.where(places[time] < length, length - 1 - places[time], places[time])
        rows: str | AnyArray = element_numbers(shape[:2])[tuple(places)]
        s.end(s.reshape(s.pick(_rows(s, x), 0, np.reshape(rows, -1)), shape))
        return
    s.places(prod(shape[:2]))
    steps, own = (shape[1], 1) if batch == 0 else (1, shape[1])
    first = ("min", "a", float(shape[time]))
    step = ("select", ("less", "b", first), ("sub", ("sub", first, 1.0), "b"), "b")
    across = s.reshape(given, (shape[batch], 1) if batch == 0 else (1, shape[batch]))
    rows = s.map(("add", ("mul", step, float(own)), "c"), across, places[time], places[batch] * steps)
    s.end(s.reshape(s.gather(_rows(s, x), s.reshape(rows, (prod(shape[:2]),)), 0), shape))


def _rows(s: Steps, x: str) -> str:
    """The first two axes as one."""
    shape = s.shape(x)
    return s.reshape(x, (prod(shape[:2]), prod(shape[2:])))


def compress(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, condition = s.operand(0), to.constant(node, 1)
    if condition.ndim != 1:
        raise ModelError(f"node {node.name!r} (Compress): its condition has shape {condition.shape}; expected one axis")
    places = np.flatnonzero(condition)
    if not places.size:
        node.reject("it keeps nothing")
    if "axis" in node.attributes:
        s.end(s.pick(x, node.axis(s.attribute("axis"), len(s.shape(x))), places))
    else:
        s.end(s.elements(x, places))


def size(node: OnnxNode, to: Context) -> None:
    """Shapes are static, so it is a constant."""
    to.constants[node.outputs[0]] = np.asarray(prod(Steps(node, to).shape(node.input(0))), np.int64)


def eye_like(node: OnnxNode, to: Context) -> None:
    """Make a constant that follows from the shape alone."""
    rows, columns = Steps(node, to).shape(node.input(0))
    to.constants[node.outputs[0]] = np.eye(
        rows, columns, node.attributes.get("k", 0), dtype=to.cast_target(node, "dtype")
    )
