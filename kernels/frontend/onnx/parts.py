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


def slice_(node: OnnxNode, to: Context) -> bool:
    """Slice one or several axes at constant places in steps of 1."""
    x, older = node.input(0), node.opset < 10
    names = dict(zip(("starts", "ends", "axes", "steps"), (*node.inputs[1:], *("",) * 4), strict=False))
    if not to.is_activation(x) or (not older and any(name and name not in to.constants for name in names.values())):
        return False
    found = [node.attributes.get(key) if older else to.constants.get(name) for key, name in names.items()]
    starts, ends, axes, steps = (None if each is None else [int(n) for n in np.reshape(each, -1)] for each in found)
    if starts is None or ends is None or set(steps or ()) - {1}:
        return False
    shape = to.shapes[x]
    chosen = node.distinct_axes(axes if axes is not None else range(len(starts)), len(shape))
    if not len(starts) == len(ends) == len(chosen):
        return False
    parts = [slice(*pair).indices(shape[axis])[:2] for axis, *pair in zip(chosen, starts, ends, strict=True)]
    if any(last <= first for first, last in parts):
        return False
    for i, (axis, (first, last)) in enumerate(zip(chosen, parts, strict=True)):
        output = node.outputs[0] if i == len(chosen) - 1 else to.fresh(f"{node.outputs[0]}.axis{axis}")
        x = to.emit(node, "slice", (x,), {"axis": axis, "start": first, "stop": last}, output=output)
    return True


def gather(node: OnnxNode, to: Context) -> bool:
    """One element along an axis, or neighbours in their order."""
    x, indices = node.input(0), to.constants.get(node.input(1))
    if not to.is_activation(x) or indices is None:
        return False
    shape = to.shapes[x]
    axis = node.axis(node.attributes.get("axis", 0), len(shape))
    places = [node.axis(int(place), shape[axis]) for place in indices.reshape(-1)]
    if not places or indices.ndim > 1 or places != list(range(places[0], places[0] + len(places))):
        return False
    part = {"axis": axis, "start": places[0], "stop": places[-1] + 1}
    if indices.ndim == 1:
        to.emit(node, "slice", (x,), part)
        return True
    one = to.emit(node, "slice", (x,), part, output=to.fresh(f"{node.outputs[0]}.kept"))
    to.reshape(node, one, (*shape[:axis], *shape[axis + 1 :]))
    return True
