"""Compute on the untransposed tensors between transpositions, where fewer of these remain."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import numpy as np

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, prune, rebuilt

Perm = tuple[int, ...]
_OF_PARTS = frozenset({"slice", "concat"})
_BEARS_TURNS = _OF_PARTS | {"add", "mul", "map", *ACTIVATIONS}


def late_turns(graph: Graph) -> Graph:
    """op(transpose(a), transpose(b) or a constant) -> transpose(op(a, b)), over each region of such operations that
    this leaves with fewer transpositions. No region reads another."""
    regions = _regions(graph)
    turns = {node.output for node in graph.nodes if node.op == "transpose"}
    after = {node.output for node in _Turns(graph, set().union(*regions)).written().nodes if node.op == "transpose"}
    fewer = [region for region in regions if len(after & region) < len(turns & region)]
    return _Turns(graph, set().union(*fewer)).written() if fewer else graph


def _regions(graph: Graph) -> list[set[str]]:
    """Return the outputs of operations of transposed tensors, each connected region apart."""
    turned: dict[str, set[str]] = {}
    for node in graph.nodes:
        read = [name for name in node.inputs if name not in graph.constants]
        if node.op == "transpose":
            turned[node.output] = turned.get(read[0], {node.output})
            turned[node.output].add(node.output)
        elif node.op in _BEARS_TURNS and read and all(name in turned for name in read):
            whole = turned[read[0]]
            for name in read[1:]:
                if turned[name] is not whole:
                    less, whole = sorted((turned[name], whole), key=len)
                    whole |= less
                    turned |= dict.fromkeys(less, whole)
            whole.add(node.output)
            turned[node.output] = whole
    return [region for region in {id(each): each for each in turned.values()}.values() if len(region) > 2]


@dataclass(frozen=True)
class _Turned:
    """A tensor that is another one, transposed."""

    inner: str
    perm: Perm


class _Turns:
    """One walk over a graph, in which the operations of a region work on what was not transposed yet."""

    def __init__(self, graph: Graph, region: AbstractSet[str]) -> None:
        self._graph, self._region = graph, region
        self._turned: dict[str, _Turned] = {}
        self._written: set[str] = set()
        self._nodes: list[Node] = []
        self._shapes: dict[str, Shape] = {}
        self._constants: dict[str, Array] = {}

    def written(self) -> Graph:
        for node in self._graph.nodes:
            if node.output not in self._region or not self._is_bypassed(node):
                for name in node.inputs:
                    self._write(name)
                self._nodes.append(node)
        for name in self._graph.outputs:
            self._write(name)
        return prune(rebuilt(self._graph, self._nodes, shapes=self._shapes, constants=self._constants))

    def _write(self, name: str) -> None:
        """Transpose after all what somebody reads."""
        if name in self._turned and name not in self._written:
            self._written.add(name)
            inner, perm = self._turned[name].inner, self._turned[name].perm
            self._nodes.append(Node(name, "transpose", (inner,), (name,), {"perm": perm}))

    def _is_bypassed(self, node: Node) -> bool:
        """Return whether the node's result is known as another tensor, transposed."""
        if node.op == "transpose":
            before, perm = self._turned.get(node.inputs[0]), tuple(node.attributes["perm"])
            if before is not None:
                perm = tuple(before.perm[axis] for axis in perm)
            self._turned[node.output] = _Turned(node.inputs[0] if before is None else before.inner, perm)
            return True
        read = [name for name in node.inputs if name not in self._graph.constants]
        turns = {self._turned[name].perm for name in read if name in self._turned}
        shape = self._graph.shapes[node.output]
        alike = node.op in _OF_PARTS or all(self._graph.shapes[name] == shape for name in read)
        if len(turns) != 1 or any(name not in self._turned for name in read) or not alike:
            return False
        (perm,) = turns
        if len(perm) != len(shape):
            return False
        name = fresh(self._graph, f"{node.output}.unturned")
        back = tuple(int(axis) for axis in np.argsort(perm))
        self._shapes[name] = tuple(shape[axis] for axis in back)
        attributes = dict(node.attributes)
        if "axis" in attributes:
            attributes["axis"] = perm[attributes["axis"]]
        inputs = tuple(self._operand(each, back) for each in node.inputs)
        self._nodes.append(replace(node, inputs=inputs, outputs=(name,), attributes=attributes))
        self._turned[node.output] = _Turned(name, perm)
        return True

    def _operand(self, name: str, back: Perm) -> str:
        if name in self._turned:
            return self._turned[name].inner
        new = fresh(self._graph, f"{name}.unturned_{len(self._constants)}")
        self._constants[new] = turned_constant(self._graph.constants[name], back)
        return new


def turned_constant(constant: Array, perm: Perm) -> Array:
    """Turn a constant, which may have fewer axes and broadcast, as what it goes to."""
    whole = constant.reshape((1,) * (len(perm) - constant.ndim) + constant.shape)
    return np.ascontiguousarray(whole.transpose(perm))
