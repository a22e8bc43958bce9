"""Sequences of tensors: lists of names that are followed while a model is read.

What takes tensors out of them, or joins them, becomes the nodes of tensors that it means. Optionals are followed, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.nodes import Nodes
from kernels.frontend.onnx.operator import Operator, always


def outputs_of(to: Context, names: Iterable[str], import_: Callable[[OnnxNode, Context], None]) -> tuple[str, ...]:
    """The model's outputs, in place of a sequence NAME its tensors, NAME.0 and so on. Raises ModelError where it has
    none."""
    found: list[str] = []
    for name in names:
        if name not in to.sequences:
            found.append(name)
            continue
        if not to.sequences[name]:
            raise ModelError(f"output {name!r} is a sequence of no tensors; take it out of the model's outputs")
        for index, part in enumerate(to.sequences[name]):
            target = to.fresh(f"{name}.{index}")
            Nodes(OnnxNode(name, "", to.opset, (), (target,), {}), to, import_).end(part)
            found.append(target)
    return tuple(found)


def _sequence(node: OnnxNode, to: Context) -> tuple[str, ...]:
    if node.input(0) not in to.sequences:
        node.damaged(f"input 0 ({node.input(0)!r}) is no sequence")
    return to.sequences[node.input(0)]


def _place(node: OnnxNode, to: Context, index: int, count: int) -> int:
    """The constant that an input holds, counted from 0; below `count`."""
    place = int(to.constant(node, index).reshape(-1)[0])
    if not -count <= place < count:
        node.damaged(f"place {place} is outside of {count} tensors")
    return place % count


def _constant(node: OnnxNode, to: Context, what: str, value: object) -> str:
    name = to.fresh(f"{node.outputs[0]}.{what}")
    to.constants[name] = np.asarray(value, np.int64)
    return name


def _construct(n: Nodes) -> None:
    node, to = n.node, n.to
    for index, name in enumerate(node.inputs):
        to.require(node, name, f"input {index}")
    to.sequences[node.outputs[0]] = node.inputs


def _insert(n: Nodes) -> None:
    node, to = n.node, n.to
    parts, name = _sequence(node, to), node.input(1)
    to.require(node, name, "input 1")
    place = len(parts)
    if node.input(2) and int(to.constant(node, 2).reshape(-1)[0]) != place:
        place = _place(node, to, 2, len(parts))
    to.sequences[node.outputs[0]] = (*parts[:place], name, *parts[place:])


def _erase(n: Nodes) -> None:
    node, to = n.node, n.to
    parts = _sequence(node, to)
    place = _place(node, to, 1, len(parts)) if node.input(1) else len(parts) - 1
    to.sequences[node.outputs[0]] = (*parts[:place], *parts[place + 1 :])


def _length(n: Nodes) -> None:
    node, to = n.node, n.to
    to.constants[node.outputs[0]] = np.asarray(len(_sequence(node, to)), np.int64)


def _at(n: Nodes) -> None:
    node, to = n.node, n.to
    parts = _sequence(node, to)
    n.end(parts[_place(node, to, 1, len(parts))])


def _split(n: Nodes) -> None:
    """Parts of the sizes given, or of one size, the last one smaller; else of one element, whose axis may go."""
    node, to = n.node, n.to
    source = node.input(0)
    to.require(node, source, "input 0")
    shape = to.constants[source].shape if source in to.constants else to.shapes[source]
    axis = node.axis(node.attributes.get("axis", 0), len(shape))
    if axis in to.counts.get(source, {}):
        node.reject(f"how many elements {source!r} has along axis {axis} depends on the model's input")
    sizes, extent = to.optional_constant(node, 1), shape[axis]
    if sizes is None or not sizes.ndim:
        size = 1 if sizes is None else int(sizes)
        if size < 1:
            node.damaged(f"parts of {size} elements")
        sizes = np.diff([*range(0, extent, size), extent])
    if sum(sizes) != extent or min(sizes) < 0:
        node.damaged(f"parts of {[*map(int, sizes)]} elements of {extent}")
    starts = np.cumsum([0, *sizes]).tolist()
    parts = [to.fresh(f"{node.outputs[0]}/{index}") for index in range(len(sizes))]
    axes = _constant(node, to, "axes", [axis])
    for index, part in enumerate(parts):
        if not sizes[index]:  # PyTorch's chunk of 9 elements into 4 gives 3, 3, 3 and, in ONNX, none
            to.constants[part] = np.zeros((*shape[:axis], 0, *shape[axis + 1 :]), to.type_of(source))
            continue
        bounds = [_constant(node, to, f"{index}.{place}", [starts[index + place]]) for place in (0, 1)]
        if node.input(1) or node.attributes.get("keepdims", 1):
            n.slice(source, *bounds, axes, name=part)
        else:
            n.gather(source, _constant(node, to, f"{index}.only", starts[index]), name=part, axis=axis)
    to.sequences[node.outputs[0]] = tuple(parts)


def _concat(n: Nodes) -> None:
    """Joined along an axis, or stacked along a new one."""
    node, to = n.node, n.to
    parts, axis = list(_sequence(node, to)), node.attributes["axis"]
    if not parts:
        node.reject("its sequence is empty")
    if node.attributes.get("new_axis", 0):
        whole = [to.fresh(f"{node.outputs[0]}/{index}") for index in range(len(parts))]
        axes = _constant(node, to, "axes", [axis])
        for part, name in zip(parts, whole, strict=True):
            n.unsqueeze(part, axes, name=name)
        parts = whole
    n.concat(*parts, to_output=0, axis=axis)


def _optional(n: Nodes) -> None:
    """Follow an optional: the model says where it makes it whether there is an element."""
    node, to = n.node, n.to
    if node.input(0):
        _get(n)
    else:
        to.absent.add(node.outputs[0])


def _get(n: Nodes) -> None:
    node, to = n.node, n.to
    if node.input(0) in to.absent:
        node.damaged(f"{node.input(0)!r} is an optional without an element")
    n.end(node.input(0))


def _has(n: Nodes) -> None:
    node, to = n.node, n.to
    name = node.input(0)
    if name and name not in to.absent and name not in to.sequences:
        to.require(node, name, "input 0")
    to.constants[node.outputs[0]] = np.asarray(bool(name) and name not in to.absent)


def _empty(n: Nodes) -> None:
    node, to = n.node, n.to
    to.sequences[node.outputs[0]] = ()


OPERATORS = tuple(
    Operator(name, write=write, writes=always)
    for name, write in (
        ("ConcatFromSequence", _concat),
        ("Optional", _optional),
        ("OptionalGetElement", _get),
        ("OptionalHasElement", _has),
        ("SequenceAt", _at),
        ("SequenceConstruct", _construct),
        ("SequenceEmpty", _empty),
        ("SequenceErase", _erase),
        ("SequenceInsert", _insert),
        ("SequenceLength", _length),
        ("SplitToSequence", _split),
    )
)
