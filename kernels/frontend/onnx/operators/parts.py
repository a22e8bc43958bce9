"""Parts of tensors, and tensors joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.counted_rows import counts, shaping
from kernels.frontend.onnx.counted_rows.bounds import bounds_of
from kernels.frontend.onnx.counted_rows.counts import number
from kernels.frontend.onnx.counted_rows.rows import Rows
from kernels.frontend.onnx.counted_rows.sizes import JOINED
from kernels.frontend.onnx.extent import Extent
from kernels.frontend.onnx.operator import Operator, Values, no_bytes
from kernels.frontend.onnx.steps import Steps
from kernels.ir.expressions import Expression


def split(node: OnnxNode, to: Context) -> None:
    """One slice for each output; what is empty is a constant."""
    x = to.activation(node)
    shape = to.shapes[x]
    axis = node.axis(node.attributes.get("axis", 0), len(shape))
    start = 0
    for name, size in zip(node.outputs, _sizes(node, to, shape[axis]), strict=True):
        if name and not size:
            to.constants[name] = np.zeros((*shape[:axis], 0, *shape[axis + 1 :]), to.type_of(x))
        elif name:
            one = replace(node, name=f"{node.name}:{name}", outputs=(name,))
            to.emit(one, "slice", (x,), {"axis": axis, "start": start, "stop": start + size})
        start += size


def _sizes(node: OnnxNode, to: Context, extent: int) -> list[int]:
    """Given, or equal ones of which the last may be smaller."""
    stored = node.attributes["split"] if "split" in node.attributes else to.optional_constant(node, 1)
    count = len(node.outputs)
    if node.attributes.get("num_outputs", count) != count:
        said = node.attributes["num_outputs"]
        node.damaged(f"num_outputs is {said}, and it has {count} outputs")
    if stored is None:
        whole = -(-extent // count)
        sizes = [max(0, min(whole, extent - i * whole)) for i in range(count)]
    else:
        sizes = [int(size) for size in np.reshape(stored, -1)]
    if len(sizes) != count or sum(sizes) != extent or min(sizes) < (1 if stored is None else 0):
        node.damaged(f"{extent} cannot be split into {sizes} for {count} outputs")
    return sizes


def slice_(node: OnnxNode, to: Context) -> None:
    """Slice at constant places; an empty result is a constant."""
    s = Steps(node, to)
    x = s.operand(0)
    shape = s.shape(x)
    starts, ends = s.whole_numbers(1, "starts") or [], s.whole_numbers(2, "ends") or []
    given = s.whole_numbers(3, "axes")
    axes = node.distinct_axes(given if given is not None else range(len(starts)), len(shape))
    steps = s.whole_numbers(4) or [1] * len(axes)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        node.damaged(f"{starts}, {ends}, {axes}, {steps} do not fit each other")
    chosen = {
        axis: range(shape[axis])[start : None if step < 0 and end < -shape[axis] else end : step]
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    }
    if not all(chosen.values()):
        kept = [len(chosen.get(axis, range(extent))) for axis, extent in enumerate(shape)]
        to.constants[node.outputs[0]] = np.zeros(kept, to.type_of(x))
        return
    if {*steps} != {1} or not to.is_activation(x):
        for axis, places in chosen.items():
            x = s.pick(x, axis, places)
        s.end(s.tensor(x))
        return
    for i, (axis, places) in enumerate(chosen.items()):
        output = node.outputs[0] if i == len(chosen) - 1 else to.fresh(f"{node.outputs[0]}.axis{axis}")
        x = to.emit(node, "slice", (x,), {"axis": axis, "start": places[0], "stop": places[-1] + 1}, output=output)


def gather(node: OnnxNode, to: Context) -> None:
    """Gather by constant indices, of which one or neighbours in order are a slice; or by computed ones."""
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
    kept = (*shape[:axis], *places.shape, *shape[axis + 1 :])
    if not flat or places.ndim > 1 or flat != [*range(flat[0], flat[0] + len(flat))] or not to.is_activation(x):
        s.end(s.reshape(s.pick(x, axis, flat), kept))
        return
    output = None if places.ndim else to.fresh(f"{node.outputs[0]}.kept")
    part = to.emit(node, "slice", (x,), {"axis": axis, "start": flat[0], "stop": flat[-1] + 1}, output=output)
    if output:
        to.reshape(node, part, kept)


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


def element_numbers(shape: tuple[int, ...]) -> AnyArray:
    """The number of each element, row-major."""
    return np.arange(prod(shape)).reshape(shape)


def inside(node: OnnxNode, indices: AnyArray, extent: int) -> AnyArray:
    if np.any(indices < -extent) or np.any(indices >= extent):
        node.damaged(f"an index lies outside of {extent} elements")
    return np.where(indices < 0, indices + extent, indices)


def along(node: OnnxNode, shape: tuple[int, ...], indices: AnyArray, axis: int) -> AnyArray:
    """Numbers of elements of which one coordinate is given, and the others are those of the index."""
    if indices.ndim != len(shape) or any(
        k != axis and wanted > extent for k, (wanted, extent) in enumerate(zip(indices.shape, shape, strict=True))
    ):
        node.damaged(f"indices of shape {indices.shape} do not fit {shape}")
    places: list[AnyArray] = list(np.indices(indices.shape))
    places[axis] = inside(node, indices, shape[axis])
    return np.asarray(element_numbers(shape)[tuple(places)])


def gather_nd(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    x, name = s.operand(0), s.operand(1)
    batch, shape, places = int(s.attribute("batch_dims", 0)), s.shape(x), s.shape(name)
    depth = places[-1]
    if batch + depth > len(shape) or shape[:batch] != places[:batch]:
        node.damaged(f"indices of shape {places} do not fit {shape}")
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


def concat(node: OnnxNode, to: Context) -> None:
    """Join activations and constants; an empty one adds nothing."""
    s = Steps(node, to)
    parts = [s.operand(index) for index in range(len(node.inputs))]
    if all(map(to.is_activation, parts)):
        to.emit(node, "concat", node.inputs, {"axis": node.axis(s.attribute("axis"), len(s.shape(parts[0])))})
        return
    parts = [part for part in parts if 0 not in s.shape(part)] or parts
    s.end(s.concat(parts, node.axis(s.attribute("axis"), len(s.shape(parts[0])))))


def _from_the_first(r: Rows, indices: str, extents: Sequence[Extent]) -> str:
    """Indices of which none is negative, which counts from the last valid row; along the last axis each is of the next
    of `extents`, or all are of the only one."""
    known = r.value(indices)
    if bounds_of(r.to, indices)[0] >= 0 if known is None else not np.any(known < 0):
        return indices
    held = r.concat([number(r, extent) for extent in extents], 0)
    from_end: Expression = ("select", ("less", "a", 0.0), ("add", "a", "b"), "a")
    return r.map(from_end, r.tensor(indices), held if r.shape(indices) else r.reshape(held, ()))


def _taken(r: Rows) -> None:
    """Gather."""
    x, indices = r.operand(0), r.operand(1)
    axis = r.node.axis(r.attribute("axis", 0), len(r.shape(x)))
    named, counts = len(r.shape(indices)), r.counts(0)
    places = _from_the_first(r, indices, [counts[axis]]) if axis in counts else indices
    if places == indices:
        r.import_from()
    else:
        r.places(r.shape(x)[axis])
        r.end(r.gather(x, places, axis))
    found = {k if k < axis else k + named - 1: c for k, c in counts.items() if k != axis}
    r.tell({**found, **{axis + k: c for k, c in r.counts(1).items()}})


def _taken_rows(r: Rows) -> None:
    """GatherND."""
    indices, counts, batch = r.operand(1), r.counts(0), int(r.attribute("batch_dims", 0))
    rest, inner = len(r.shape(indices)) - 1, batch + r.shape(indices)[-1]
    r.only(0, range(batch, len(r.shape(r.operand(0)))), "is looked along")
    r.only(1, range(rest), "is looked along")
    inside = any(batch <= axis < inner for axis in counts)
    r.import_from(None, _from_the_first(r, indices, r.extents(0)[batch:inner]) if inside else None)
    r.tell({**r.counts(1), **{k - inner + rest: c for k, c in counts.items() if k >= inner}})


def _taken_elements(r: Rows) -> None:
    rank = len(r.shape(r.operand(0)))
    axis = r.node.axis(r.attribute("axis", 0), rank)
    r.only(0, [k for k in range(rank) if k != axis], "is looked along")
    if any(r.counts(0).get(k) != r.counts(1).get(k) for k in r.counts(0)):
        r.differ()
    r.import_from()
    r.tell(r.counts(1))


def _joined(node: OnnxNode, values: Values) -> AnyArray:
    return np.concatenate(values, axis=node.attributes["axis"])


def _gathered(node: OnnxNode, values: Values) -> AnyArray:
    return np.asarray(np.take(values[0], values[1], axis=node.attributes.get("axis", 0)))


def _sliced(node: OnnxNode, values: Values) -> AnyArray:
    """Slice with attributes (opset < 10) or inputs."""
    data: AnyArray = values[0]
    names = ("starts", "ends", "axes", "steps")
    given = {n: values[i] for i, n in enumerate(names, 1) if i < len(values) and values[i] is not None}
    parts = {n: np.reshape(v, -1) for n, v in {**node.attributes, **given}.items() if n in names}
    count = len(parts["starts"])
    axes, steps = parts.get("axes", np.arange(count)), parts.get("steps", np.ones(count, int))
    index = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, parts["starts"], parts["ends"], steps, strict=True):
        whole_to_front = step < 0 and end < -data.shape[axis]
        index[axis] = slice(int(start), None if whole_to_front else int(end), int(step))
    return np.asarray(data[tuple(index)])


def _gathered_bytes(node: OnnxNode, values: Values) -> int:
    data, places = values
    axis = node.axis(node.attributes.get("axis", 0), data.ndim)
    return int(data.nbytes // max(1, data.shape[axis]) * places.size)


OPERATORS = (
    Operator(
        "Concat", import_=concat, sizes=JOINED, rows=shaping.joined,
        follow=counts.by(counts.joined), fold=_joined, fold_bytes=lambda _, values: sum(each.nbytes for each in values),
    ),
    Operator(
        "Gather", import_=gather, rows=_taken, follow=counts.placed(_gathered), fold=_gathered,
        fold_bytes=_gathered_bytes,
    ),
    Operator("GatherElements", import_=gather_elements, rows=_taken_elements),
    Operator("GatherND", import_=gather_nd, rows=_taken_rows),
    Operator(
        "Slice", operands=("...", "k", "k", "k", "k"), import_=slice_, sizes=(1, 2),
        counts_from=1, rows=shaping.sliced, follow=counts.placed(_sliced), fold=_sliced, fold_bytes=no_bytes,
    ),
)  # fmt: skip
