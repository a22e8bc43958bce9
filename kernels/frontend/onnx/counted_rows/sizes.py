"""Sizes that a model computes from its input (how large a box is): counts between the bounds that its nodes show."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, inf, prod

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.extent import Count, Extent
from kernels.frontend.onnx.steps import MAX_PLACES, Steps

from .bounds import bounds_of

JOINED = (-1,)
"""Every input, where one of them is made of counts."""
_MOST_SIZES = 16


def with_sizes(node: OnnxNode, to: Context, places: tuple[int, ...], *, optional: bool = False) -> OnnxNode:
    """The node, its inputs of these places being counts where they are computed and bounded; `optional`: others, too.

    What joins sizes of padded tensors (`JOINED`) and computed ones becomes one of sizes, too. Raises UnsupportedNode
    where no bound of a size is known.
    """
    if not places:
        return node
    joins = places == JOINED
    if joins:
        places = tuple(range(len(node.inputs))) if any(name in to.extents for name in node.inputs) else ()
    inputs = list(node.inputs)
    for index in places:
        name = node.input(index)
        if not name or name not in to.shapes or name in to.constants or name in to.extents:
            continue
        found = _sizes(Steps(node, to), name)
        if found is not None:
            inputs[index] = to.fresh(f"{name}.sizes")
            if any(isinstance(each, Count) for each in found.reshape(-1)):
                to.extents[inputs[index]] = found
            else:
                to.constants[inputs[index]] = found.astype(np.int64)
        elif not joins and not optional and to.type_of(name) == np.int64:
            node.reject(
                f"input {index} ({name!r}) is a size that is computed from the model's input, and "
                "how large it gets is not known; it must be a constant (an initializer), or made of numbers that the "
                "model clips (Clip, Min)"
            )
    return replace(node, inputs=tuple(inputs))


def _sizes(s: Steps, name: str) -> AnyArray | None:
    """The content of a tensor of few whole numbers; None where there is no bound."""
    shape = s.shape(name)
    if s.to.type_of(name) != np.int64 or prod(shape) > _MOST_SIZES:
        return None
    found: list[Extent] = []
    for index in range(prod(shape)):
        one = _element(s, name, index)
        if one is None:
            return None
        found.append(one)
    made = np.empty(len(found), object)
    made[:] = found
    return made.reshape(shape)


def _element(s: Steps, name: str, index: int) -> Extent | None:
    """An element by its number, row-major: a whole number, or a count."""
    to = s.to
    writers = {node.output: node for node in to.nodes}
    while (node := writers.get(name)) is not None and name not in to.weights:
        if node.op == "reshape":
            name = node.inputs[0]
        elif node.op == "concat" and prod(to.shapes[name][: node.attributes["axis"]]) == 1:
            for part in node.inputs:
                if index < prod(to.shapes[part]):
                    break
                index -= prod(to.shapes[part])
            name = part
        else:
            break
    if name in to.weights:
        return int(to.weights[name].reshape(-1)[index])
    if (name, index) not in to.sizes:
        low, high = bounds_of(to, name)
        if low == -inf or high == inf or max(abs(low), abs(high)) > MAX_PLACES:
            return None
        least, most = ceil(low - 1e-6), floor(high + 1e-6)
        flat = s.reshape(name, (prod(to.shapes[name]),))
        one = s.slice(flat, 0, index, index + 1)
        made = s.map(("min", ("max", "a", float(least)), float(most)), one)
        to.sizes[name, index] = Count(made, least, most)
    return to.sizes[name, index]
