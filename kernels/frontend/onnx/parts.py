"""Taking parts of an activation: Split, Slice and Gather with constant places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.errors import ModelError

from .context import Context, OnnxNode


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
        raise ModelError(f"node {node.name!r} (Split): num_outputs is {said}, and it has {count} outputs")
    if stored is None:
        whole = -(-extent // count)
        sizes = [max(0, min(whole, extent - i * whole)) for i in range(count)]
    else:
        sizes = [int(size) for size in np.reshape(stored, -1)]
    if len(sizes) != count or sum(sizes) != extent or min(sizes) < (1 if stored is None else 0):
        raise ModelError(f"node {node.name!r} (Split): {extent} cannot be split into {sizes} for {count} outputs")
    return sizes


def slice_(node: OnnxNode, to: Context) -> None:
    """Slice one or several axes, step 1."""
    x = to.activation(node)
    shape = to.shapes[x]
    starts, ends, axes, steps = (_numbers(node, to, i, name) for i, name in enumerate(_PARTS, 1))
    if starts is None or ends is None:
        raise ModelError(f"node {node.name!r} (Slice): starts or ends are missing; the model is damaged")
    if steps is not None and set(steps) != {1}:
        node.reject(f"steps {steps}; an activation can only be sliced in steps of 1")
    chosen = node.distinct_axes(axes if axes is not None else range(len(starts)), len(shape))
    if not len(starts) == len(ends) == len(chosen):
        raise ModelError(f"node {node.name!r} (Slice): {len(starts)} starts and {len(ends)} ends of {len(chosen)} axes")
    for i, (axis, start, end) in enumerate(zip(chosen, starts, ends, strict=True)):
        first, last, _ = slice(start, end).indices(shape[axis])
        if last <= first:
            node.reject(f"axis {axis} from {start} to {end} of {shape[axis]} is empty")
        output = node.outputs[0] if i == len(chosen) - 1 else to.fresh(f"{node.outputs[0]}.axis{axis}")
        x = to.emit(node, "slice", (x,), {"axis": axis, "start": first, "stop": last}, output=output)


_PARTS = ("starts", "ends", "axes", "steps")


def _numbers(node: OnnxNode, to: Context, index: int, name: str) -> list[int] | None:
    """An attribute (opset < 10) or an input."""
    stored = node.attributes.get(name) if node.opset < 10 else to.optional_constant(node, index)
    return None if stored is None else [int(number) for number in np.reshape(stored, -1)]


def gather(node: OnnxNode, to: Context) -> None:
    """One element along an axis, or neighbours in their order."""
    x = to.activation(node)
    shape, indices = to.shapes[x], to.constant(node, 1)
    axis = node.axis(node.attributes.get("axis", 0), len(shape))
    places = [node.axis(int(place), shape[axis]) for place in indices.reshape(-1)]
    if not places or indices.ndim > 1 or places != list(range(places[0], places[0] + len(places))):
        node.reject(f"indices {indices.tolist()} of an activation; only one, or neighbours in order, are supported")
    part = {"axis": axis, "start": places[0], "stop": places[-1] + 1}
    if indices.ndim == 1:
        to.emit(node, "slice", (x,), part)
        return
    one = to.emit(node, "slice", (x,), part, output=to.fresh(f"{node.outputs[0]}.kept"))
    to.reshape(node, one, (*shape[:axis], *shape[axis + 1 :]))
