"""Endings on a GPU: what follows a dense layer ends it, and what is added to normalised rows is added by the same
kernel.

A `row_norm` (`row_norms.py`) may have a fourth input, of the result's shape, which is added to what is normalised. A
dense layer may have an `ending`: an expression of its sum `a`, and of `b`, an activation of the result's shape that is
its fourth input. Both are found in what the importer made, through reshapes that keep the last axis.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from kernels.errors import ModelError
from kernels.ir.activations import activated, activation_of, expression_of
from kernels.ir.expressions import Expression, program_of, with_operands
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import use_counts
from kernels.ir.programs import in_floats
from kernels.ir.shapes import Shape
from kernels.passes.fuse_maps import LONGEST, number_of, size_of
from kernels.passes.rewrite import fresh, rebuilt

_SUM = ("add", "a", "b")


def fuse_norm_endings(graph: Graph) -> Graph:
    """Make an addend of normalised rows, if it is no constant, the normalisation's fourth input."""
    counts, before = use_counts(graph), dict[str, Node]()
    found: dict[str, Node] = {}
    gone: set[str] = set()
    for node in graph.nodes:
        before[node.output] = node
        if expression_of(node) not in (_SUM, ("add", "b", "a")) or len(node.inputs) != 2:
            continue
        for name, other in (node.inputs, node.inputs[::-1]):
            norm, fits = before.get(name), counts[name] == 1 and other not in graph.constants
            fits = fits and graph.shapes[name] == graph.shapes[other]
            if fits and norm is not None and norm.op == "row_norm" and len(norm.inputs) == 3:
                found[node.output] = replace(norm, inputs=(*norm.inputs, other), outputs=node.outputs)
                gone.add(name)
                break
    return rebuilt(graph, [found.get(node.output, node) for node in graph.nodes if node.output not in gone])


def _is_vector(graph: Graph, inputs: tuple[str, ...], tensor: str) -> bool:
    """Return whether the other operand is a constant along the last axis."""
    other = next((name for name in inputs if name != tensor), "")
    constant = graph.constants.get(other)
    columns = graph.shapes[tensor][-1]
    return constant is not None and constant.shape[-1:] == (columns,) and constant.size == columns


def fuse_dense_endings(graph: Graph) -> Graph:
    """Constants along its columns become a dense layer's bias; the element-wise nodes behind it its ending."""
    return _Endings(graph).fused()


def fuse_dense_joins(graph: Graph) -> Graph:
    """Let dense layers add another activation to their result, or multiply it by one: they `join` "add" or "mul" their
    fourth input."""
    return _Joins(graph).fused()


class _Endings:
    """One walk over a graph; `open` are tensors that hold a dense layer's result, of which nobody else reads a part."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._counts: Counter[str] = use_counts(graph)
        self._nodes: dict[str, Node] = {}
        self._open: dict[str, str] = {}
        """Tensor -> the output of the dense node."""
        self._chains: dict[str, list[str]] = {}
        """Output of a dense node -> those of the reshapes behind it."""
        self._constants: dict[str, Array] = {}
        self._shapes: dict[str, Shape] = {}

    def fused(self) -> Graph:
        for node in self._graph.nodes:
            if not self._joined(node):
                self._nodes[node.output] = node
                self._note(node)
        return rebuilt(self._graph, list(self._nodes.values()), constants=self._constants, shapes=self._shapes)

    def _note(self, node: Node) -> None:
        if node.op == "dense":
            self._chains[node.output] = []
        source = node.output if node.op == "dense" else self._open.get(node.inputs[0]) if node.op == "reshape" else None
        if source is None or self._shape(node.output)[-1:] != self._shape(source)[-1:]:
            return
        if node.op == "reshape":
            self._chains[source].append(node.output)
        if self._counts[node.output] == 1 and node.output not in self._graph.outputs:
            self._open[node.output] = source

    def _joined(self, node: Node) -> bool:
        """Return whether the node became a part of the dense layer before it."""
        expression = expression_of(node)
        if expression is None or not in_floats(node, self._graph.types):
            return False
        for name in node.inputs:
            if name in self._open and node.inputs.count(name) == 1:
                dense = self._nodes[self._open[name]]
                merged = self._with_bias(dense, node, name) or self._with_ending(dense, node, name, expression)
                if merged is not None:
                    self._replace(merged, node, name)
                    return True
        return False

    def _with_bias(self, dense: Node, node: Node, name: str) -> Node | None:
        is_sum = node.op == "add" and not node.attributes.get("activation")
        if not is_sum or _is_ended(dense) or not _is_vector(self._graph, node.inputs, name):
            return None
        other = next(each for each in node.inputs if each != name)
        bias = self._graph.constants[other].reshape(-1).astype(np.float64)
        if len(dense.inputs) > 2 and dense.inputs[2]:
            bias = bias + self._constant(dense.inputs[2])
        new = fresh(self._graph, f"{node.output}.bias")
        self._constants[new] = bias.astype(np.float32)
        return replace(dense, inputs=(*dense.inputs[:2], new))

    def _with_ending(self, dense: Node, node: Node, name: str, expression: Expression) -> Node | None:
        """`a` is the layer's sum, `b` the other operand; None where there are more, or the result is too long."""
        graph = self._graph
        if self._shape(name) != graph.shapes[node.output]:
            return None
        attributes = {key: value for key, value in dense.attributes.items() if key != "activation"}
        before = attributes.get("ending") or activated("a", activation_of(dense))
        residual = dense.inputs[3] if len(dense.inputs) > 3 else ""
        by: dict[str, Expression] = {}
        for letter, operand in zip("abcd", node.inputs, strict=False):
            value = number_of(graph, operand)
            if operand == name:
                by[letter] = before
            elif value is not None:
                by[letter] = value
            elif residual or operand in graph.constants or graph.shapes[operand] != graph.shapes[node.output]:
                return None
            else:
                by[letter], residual = "b", operand
        whole = with_operands(expression, by)
        try:
            program_of(whole)
        except ModelError:
            return None
        if size_of(whole) > LONGEST:
            return None
        bias = dense.inputs[2] if len(dense.inputs) > 2 else ""
        inputs = (*dense.inputs[:2], bias, residual) if residual else dense.inputs
        return replace(dense, inputs=inputs, attributes={**attributes, "ending": whole})

    def _replace(self, dense: Node, node: Node, name: str) -> None:
        """The layer and its reshapes go where `node` is, whose result they give; its operands are all known there."""
        chain = self._chains[dense.output]
        reshapes = [self._nodes.pop(each) for each in chain]
        del self._nodes[dense.output]
        if len(dense.inputs) > 3 and self._shape(dense.inputs[3]) != self._shape(dense.output):
            flat = fresh(self._graph, f"{dense.output}.beside")
            self._shapes[flat] = self._shape(dense.output)
            attributes = {"shape": self._shapes[flat]}
            self._nodes[flat] = Node(node.name, "reshape", (dense.inputs[3],), (flat,), attributes)
            dense = replace(dense, inputs=(*dense.inputs[:3], flat))
        self._nodes[dense.output] = dense
        for reshape in reshapes:
            self._nodes[reshape.output] = reshape
        attributes = {"shape": self._graph.shapes[node.output]}
        last = Node(node.name, "reshape", (name,), node.outputs, attributes)
        self._nodes[last.output] = last
        chain.append(last.output)
        if self._counts[last.output] == 1 and last.output not in self._graph.outputs:
            self._open[last.output] = dense.output

    def _shape(self, name: str) -> Shape:
        return self._shapes[name] if name in self._shapes else self._graph.shapes[name]

    def _constant(self, name: str) -> Array:
        return self._constants[name] if name in self._constants else self._graph.constants[name]


class _Joins(_Endings):
    """One walk that ends layers by one sum or product."""

    def _with_bias(self, *_: object) -> Node | None:
        return None

    def _with_ending(self, dense: Node, node: Node, name: str, expression: Expression) -> Node | None:
        if expression not in (_SUM, ("mul", "a", "b")) or len(node.inputs) != 2 or "joins" in dense.attributes:
            return None
        other = next(each for each in node.inputs if each != name)
        shapes = {self._graph.shapes[each] for each in (*node.inputs, node.output)}
        stored = all(each in self._graph.constants for each in dense.inputs[1:] if each)
        if other in self._graph.constants or len(shapes) > 1 or not stored:
            return None
        inputs = (*dense.inputs[:2], (*dense.inputs, "")[2], other)
        return replace(dense, inputs=inputs, attributes={**dense.attributes, "joins": expression[0]})


def _is_ended(dense: Node) -> bool:
    return bool(dense.attributes.get("activation")) or "ending" in dense.attributes
