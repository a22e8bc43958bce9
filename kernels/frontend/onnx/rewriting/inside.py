"""Graphs inside of a node: their nodes become nodes of the model, as often as they run."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx

from kernels.errors import checkpoint
from kernels.frontend.onnx.counted_rows.counts import chosen, extents_of
from kernels.frontend.onnx.counted_rows.counts import write_out as write_out_extents
from kernels.frontend.onnx.extent import Count
from kernels.frontend.onnx.nodes import Nodes
from kernels.frontend.onnx.reading.graphs import names_read, renamed
from kernels.frontend.onnx.reading.model_file import tensor_array
from kernels.frontend.onnx.steps import Steps

MAX_NODES = 20000
"""The most nodes that all graphs of a model may be written out to."""


class Inside:
    """Names and nodes of the graphs of one node."""

    def __init__(self, n: Nodes) -> None:
        self.node, self.to, self.nodes = n.node, n.to, n
        self.steps = Steps(n.node, n.to)
        self.runs = 0

    def run(self, graph: onnx.GraphProto, given: Sequence[str]) -> list[str]:
        """Import the graph once more, its inputs being these tensors; returns the names of its outputs."""
        node, to = self.node, self.to
        if len(given) != len(graph.input):
            node.damaged(f"its graph takes {len(graph.input)} inputs of {len(given)}")
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
            to.each(renamed(inner, names, prefix), read, to)
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
            self.nodes.identity(source, name=target)

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

    def turn(self, body: onnx.GraphProto, turn: int) -> np.ndarray:
        """The number of a turn: a scalar, or one number in a row where the body says so (tf2onnx's `CropAndResize`)."""
        port = body.input[0].type.tensor_type if body.input else onnx.TypeProto.Tensor()
        return np.full((1,) * min(1, len(port.shape.dim)), turn, np.int64)


def either(inside: Inside, condition: str, a: str, b: str) -> str:
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
