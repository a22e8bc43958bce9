"""Control flow: the graphs of If, Loop and Scan are written out as nodes of the model, as often as they run.

How often a loop runs has to be known when the model is read, or is a number of rows (`counted_loops.py`). Of an If
whose condition is computed both branches run, and the condition chooses between their results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import onnx

from kernels.checkpoint import checkpoint
from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.general.padded.counts import chosen, extents_of, whole_numbers
from kernels.frontend.onnx.general.padded.counts import write_out as write_out_extents
from kernels.frontend.onnx.general.padded.extent import Count
from kernels.frontend.onnx.general.padded.sizes import with_sizes
from kernels.frontend.onnx.general.steps import Steps
from kernels.frontend.onnx.reading.model_file import tensor_array

from . import counted_loops
from .nested import names_read, renamed

CONTROL = ("If", "Loop", "Scan")
MAX_NODES = 20000
"""The most nodes that all graphs of a model may be written out to."""
Import = Callable[[onnx.NodeProto, frozenset[str]], None]
"""Imports a node of the model; of its further outputs only those that are in the set."""


def write_out(node: OnnxNode, to: Context, each: Import) -> None:
    """Import what an If, Loop or Scan does. Raises ModelError, and UnsupportedNode where that is not known before."""
    inside = Inside(node, to, each)
    if any(node.outputs):
        {"If": _if, "Loop": _loop, "Scan": _scan}[node.op](inside)


class Inside:
    """Names and nodes of the graphs of one node."""

    def __init__(self, node: OnnxNode, to: Context, each: Import) -> None:
        self.node, self.to, self.each = node, to, each
        self.steps = Steps(node, to)
        self.runs = 0

    def run(self, graph: onnx.GraphProto, given: Sequence[str]) -> list[str]:
        """Import the graph once more, its inputs being these tensors; returns the names of its outputs."""
        node, to = self.node, self.to
        if len(given) != len(graph.input):
            raise ModelError(
                f"node {node.name!r} ({node.op}): its graph takes {len(graph.input)} inputs of {len(given)}"
            )
        checkpoint()
        to.written_out += 1 + len(graph.node)
        if to.written_out > MAX_NODES:
            node.reject(f"its graph would be written out to more than {MAX_NODES} nodes; make its loops shorter")
        prefix = f"{next(filter(None, node.outputs))}/{self.runs}"
        self.runs += 1
        own = [tensor.name for tensor in graph.initializer]
        own += [name for inner in graph.node for name in inner.output if name]
        names = dict(zip((port.name for port in graph.input), given, strict=True))
        names |= {name: to.fresh(f"{prefix}/{name}") for name in own}
        for tensor in graph.initializer:
            to.constants[names[tensor.name]] = tensor_array(tensor, to.folder)
        wanted = [port.name for port in graph.output]
        read = frozenset(names.get(name, name) for name in (*names_read(graph.node), *wanted))
        for inner in graph.node:
            self.each(renamed(inner, names, prefix), read)
        for name in wanted:
            if names.get(name, name) not in to.sequences:
                to.require(node, names.get(name, name), "an output of its graph")
        return [names.get(name, name) for name in wanted]

    def constant(self, value: object) -> str:
        """A new constant."""
        name = self.to.fresh(f"{next(filter(None, self.node.outputs))}/c{len(self.to.constants)}")
        self.to.constants[name] = np.asarray(value)
        return name

    def known(self, name: str, what: str) -> np.ndarray:
        """Content of a tensor. Raises UnsupportedNode where it is computed from the model's input."""
        self.to.require(self.node, name, what)
        if name not in self.to.constants:
            self.node.reject(f"{what} ({name!r}) depends on the model's input; only a constant one is supported")
        return self.to.constants[name].reshape(-1)[:1]

    def end(self, source: str, index: int) -> None:
        """A tensor is the node's output of this number."""
        target = self.node.outputs[index] if index < len(self.node.outputs) else ""
        if target:
            self.each(onnx.helper.make_node("Identity", [source], [target]), frozenset({target}))

    def stack(self, parts: Sequence[str], axis: int, index: int) -> None:
        """Parts one behind the other along a new axis are the node's output of this number."""
        if index >= len(self.node.outputs) or not self.node.outputs[index]:
            return
        if not parts:
            self.node.reject("it never runs, and what it collects is empty")
        s, to = self.steps, self.to
        if all(part in to.constants for part in parts):
            self.end(self.constant(np.stack([to.constants[part] for part in parts], axis)), index)
            return
        shape = s.shape(parts[0])
        axis = self.node.axis(axis, len(shape) + 1)
        if any(s.shape(part) != shape for part in parts):
            self.node.reject("what it collects changes its shape from turn to turn")
        counts = [to.counts.get(part, {}) for part in parts]
        if any(each != counts[0] for each in counts):
            self.node.reject("what it collects changes its number of rows from turn to turn")
        joined = s.concat([s.reshape(part, (*shape[:axis], 1, *shape[axis:])) for part in parts], axis)
        to.counts[joined] = {k + (k >= axis): count for k, count in counts[0].items()}
        to.types[joined] = to.type_of(parts[0])
        self.end(joined, index)

    def either(self, condition: str, a: str, b: str) -> str:
        """One of two results, by a condition that is computed."""
        return _either(self, condition, a, b)

    def turn(self, body: onnx.GraphProto, turn: int) -> np.ndarray:
        """The number of a turn: a scalar, or one number in a row where the body says so (tf2onnx's `CropAndResize`)."""
        port = body.input[0].type.tensor_type if body.input else onnx.TypeProto.Tensor()
        return np.full((1,) * min(1, len(port.shape.dim)), turn, np.int64)


def _if(inside: Inside) -> None:
    node, to, s = inside.node, inside.to, inside.steps
    condition = s.operand(0)
    branches = [node.attributes["else_branch"], node.attributes["then_branch"]]
    if condition in to.constants:
        for index, name in enumerate(inside.run(branches[bool(inside.known(condition, "its condition")[0])], [])):
            inside.end(name, index)
        return
    try:
        other, then = (inside.run(branch, []) for branch in branches)
    except ModelError as e:
        hint = "both branches run, because the condition is computed; of an input that decides it, say its one value"
        raise type(e)(f"{e}; {hint} (`--constant NAME=N`)", e.obstacles) from e
    one = s.reshape(condition, ())
    for index, (a, b) in enumerate(zip(then, other, strict=True)):
        for name in (a, b):
            to.require(node, name, "what a branch gives")
        inside.end(_either(inside, one, a, b), index)


def _either(inside: Inside, condition: str, a: str, b: str) -> str:
    """One of two results, which may differ in how many rows they have: rows behind the last one are padding."""
    node, to, s = inside.node, inside.to, inside.steps
    for name in (a, b):
        if name in to.extents:
            write_out_extents(node, to, name)
    if s.shape(a) != s.shape(b) and prod(s.shape(a)) == prod(s.shape(b)) == 1:  # of one element the rank tells nothing
        kind, b = to.type_of(b), s.reshape(b, s.shape(a))
        to.types[b] = kind
    pair = [extents_of(to, name) for name in (a, b)]
    other = [axis for axis, (one, two) in enumerate(zip(*pair, strict=False)) if one != two]
    if to.type_of(a) != to.type_of(b) or len(pair[0]) != len(pair[1]) or len(other) > 1:
        node.reject(
            f"its condition depends on the model's input, and its branches give {to.type_of(a)} {s.shape(a)} and "
            f"{to.type_of(b)} {s.shape(b)}; only results of one type that differ along one axis are supported"
        )
    counts = {axis: extent for axis, extent in enumerate(pair[0]) if isinstance(extent, Count)}
    if other:
        (axis,) = other
        if isinstance(count := chosen(s, condition, pair[0][axis], pair[1][axis]), Count):
            counts[axis] = count
        width = max(s.shape(a)[axis], s.shape(b)[axis])
        full = [name for name in (a, b) if s.shape(name)[axis]]
        parts = [s.pick(name, axis, [*range(n), *[-1] * (width - n)]) for name in full for n in [s.shape(name)[axis]]]
    else:
        parts = [a, b]
    if not parts:
        node.reject("both of its branches give nothing")
    picked = s.map(("select", "a", "b", "c"), condition, *parts) if len(parts) > 1 else s.tensor(parts[0])
    if len(parts) < 2:  # a name of its own
        picked = s.map(("add", "a", 0.0), picked)
    to.types[picked] = to.type_of(a)
    if counts:
        to.counts[picked] = counts
    return picked


def _loop(inside: Inside) -> None:
    node = with_sizes(inside.node, inside.to)
    found = whole_numbers(inside.to, node.input(0))
    if found and isinstance(count := found[0], Count):
        if not inside.known(node.input(1) or inside.constant(True), "its condition")[0]:
            node.reject("it never runs")
        counted_loops.loop(inside, count)
        return
    most = int(inside.known(node.input(0), "its number of turns")[0]) if node.input(0) else None
    body, condition = node.attributes["body"], node.input(1) or inside.constant(True)
    states, collected = list(node.inputs[2:]), list[list[str]]()
    turn = 0
    while (most is None or turn < most) and bool(inside.known(condition, "its condition")[0]):
        condition, *results = inside.run(body, [inside.constant(inside.turn(body, turn)), condition, *states])
        collected.append(results[len(states) :])
        states = results[: len(states)]
        turn += 1
    for index, name in enumerate(states):
        inside.end(name, index)
    for index in range(len(states), len(node.outputs)):
        inside.stack([parts[index - len(states)] for parts in collected], 0, index)


def _scan(inside: Inside) -> None:
    node, s = inside.node, inside.steps
    if node.opset < 9:
        node.reject("in opset 8 it has a batch of sequences; convert the model to a newer opset")
    count = int(s.attribute("num_scan_inputs"))
    states, sources = list(node.inputs[: len(node.inputs) - count]), [*node.inputs[len(node.inputs) - count :]]
    outputs = len(node.outputs) - len(states)
    places = list(s.attribute("scan_input_axes", [0] * count))
    axes = [node.axis(axis, len(s.shape(name))) for axis, name in zip(places, sources, strict=True)]
    for name, axis in zip(sources, axes, strict=True):
        if axis in inside.to.counts.get(name, {}):
            node.reject(f"how often it runs, the rows of {name!r}, depends on the model's input; a Loop may do that")
    lengths = {s.shape(name)[axis] for name, axis in zip(sources, axes, strict=True)}
    if len(lengths) != 1:
        raise ModelError(f"node {node.name!r} (Scan): its sequences have lengths {sorted(lengths)}; expected one")
    backwards, length = list(s.attribute("scan_input_directions", [0] * count)), lengths.pop()
    collected = []
    for turn in range(length):
        parts = [
            _part(inside, name, axis, length - 1 - turn if reverse else turn)
            for name, axis, reverse in zip(sources, axes, backwards, strict=True)
        ]
        results = inside.run(node.attributes["body"], [*states, *parts])
        collected.append(results[len(states) :])
        states = results[: len(states)]
    for index, name in enumerate(states):
        inside.end(name, index)
    joined = list(s.attribute("scan_output_axes", [0] * outputs))
    turned = list(s.attribute("scan_output_directions", [0] * outputs))
    for index in range(outputs):
        parts = [results[index] for results in collected]
        inside.stack(parts[::-1] if turned[index] else parts, joined[index], len(states) + index)


def _part(inside: Inside, name: str, axis: int, place: int) -> str:
    """One element along an axis."""
    s, to = inside.steps, inside.to
    if name in to.constants:
        return inside.constant(np.take(to.constants[name], place, axis))
    shape = s.shape(name)
    part = s.reshape(s.slice(name, axis, place, place + 1), (*shape[:axis], *shape[axis + 1 :]))
    to.types[part] = to.type_of(name)
    return part
