"""Fold transpositions: into one another, into a reshape, through activations, into the weights of a dense layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.ir.shapes import Shape

from .rewrite import fresh, rebuilt


def fold_transposes(graph: Graph) -> Graph:
    """Leave as few transpositions as these rules can; identities remain for `eliminate_identities`."""
    return _into_dense(_as_reshapes(_compose(_sink(graph))))


def moves_no_data(shape: Shape, perm: Sequence[int]) -> bool:
    """Return whether a transposition only moves axes of extent 1, so that row-major order stays."""
    long_axes = [p for p in perm if shape[p] > 1]
    return long_axes == sorted(long_axes)


def _sink(graph: Graph) -> Graph:
    """Move a transposition behind the activation that alone reads it, to meet its inverse there."""
    counts, writers = use_counts(graph), producers(graph)
    before: dict[str, Node] = {}
    nodes: list[Node] = []
    shapes: dict[str, Shape] = {}
    for node in graph.nodes:
        turn = before.get(node.inputs[0]) or writers.get(node.inputs[0])
        if node.op not in ACTIVATIONS or turn is None or turn.op != "transpose" or counts[turn.output] != 1:
            nodes.append(node)
            continue
        nodes = [n for n in nodes if n.output != turn.output]
        inner = turn.output  # its shape becomes the one before the transposition
        shapes[inner] = shapes.get(turn.inputs[0], graph.shapes[turn.inputs[0]])
        moved = replace(turn, inputs=(inner,), outputs=node.outputs)
        nodes += [replace(node, inputs=turn.inputs, outputs=(inner,)), moved]
        before[node.output] = moved
    return rebuilt(graph, nodes, shapes=shapes)


def _compose(graph: Graph) -> Graph:
    """A transposition of a transposition is one transposition of the first one's source."""
    writers = producers(graph)
    nodes = []
    for node in graph.nodes:
        first = writers.get(node.inputs[0])
        if node.op == "transpose" and first is not None and first.op == "transpose":
            perm = tuple(first.attributes["perm"][p] for p in node.attributes["perm"])
            node = replace(node, inputs=first.inputs, attributes={"perm": perm})
            writers[node.output] = node
        nodes.append(node)
    return rebuilt(graph, nodes)


def _as_reshapes(graph: Graph) -> Graph:
    def simpler(node: Node) -> Node:
        if node.op == "transpose" and moves_no_data(graph.shapes[node.inputs[0]], node.attributes["perm"]):
            return replace(node, op="reshape", attributes={"shape": graph.shapes[node.output]})
        return node

    return rebuilt(graph, [simpler(node) for node in graph.nodes])


def _into_dense(graph: Graph) -> Graph:
    """transpose, flatten, dense: the dense layer reads the untransposed data and has its weight's rows permuted."""
    counts, writers = use_counts(graph), producers(graph)
    constants = {}
    nodes = []
    for node in graph.nodes:
        flat = writers.get(node.inputs[0]) if node.op == "dense" else None
        turn = writers.get(flat.inputs[0]) if flat is not None and flat.op == "reshape" else None
        if flat is None or turn is None or turn.op != "transpose" or turn.attributes["perm"][0] != 0:
            nodes.append(node)
            continue
        source = graph.shapes[turn.inputs[0]]
        if counts[flat.output] != 1 or graph.shapes[flat.output][0] != source[0]:
            nodes.append(node)
            continue
        name = fresh(graph, f"{node.inputs[1]}.rows")
        constants[name] = _permuted_rows(graph.constants[node.inputs[1]], source, turn.attributes["perm"])
        nodes = [n if n is not flat else replace(flat, inputs=turn.inputs) for n in nodes]
        nodes.append(replace(node, inputs=(node.inputs[0], name, *node.inputs[2:])))
    return rebuilt(graph, nodes, constants=constants)


def _permuted_rows(
    weight: np.ndarray[tuple[int, ...], np.dtype[np.float32]], source: Shape, perm: Sequence[int]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Rows of the weight in the order of the data before the transposition."""
    order = np.arange(weight.shape[0]).reshape(source[1:])
    turned = order.transpose([p - 1 for p in perm[1:]]).reshape(-1)
    out = np.empty_like(weight)
    out[turned] = weight
    return out
