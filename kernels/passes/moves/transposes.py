"""Fold transpositions: into one another, into a reshape, through activations, into the weights of a dense layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, rebuilt
from kernels.passes.rows.strided_looks import Axis, natural, reshaped

_MOVES = frozenset({"transpose", "reshape"})
_MOST_AXES = 4


def fold_transposes(graph: Graph) -> Graph:
    """Leave as few transpositions as these rules can; identities remain for `eliminate_identities`."""
    return _into_dense(_as_reshapes(_compose(sink(graph))))


def moves_no_data(shape: Shape, perm: Sequence[int]) -> bool:
    """Return whether a transposition only moves axes of extent 1, so that row-major order stays."""
    long_axes = [p for p in perm if shape[p] > 1]
    return long_axes == sorted(long_axes)


def sink(graph: Graph) -> Graph:
    """Move transpositions and reshapes behind the function of each element that alone reads them: this meets the layer
    before it, those their inverses. Those behind a product of two tensors stay: attention absorbs them."""
    counts, writers = use_counts(graph), producers(graph)
    turned_again = {node.inputs[0] for node in graph.nodes if node.op == "transpose"}
    placed = {node.output: node for node in graph.nodes}
    shapes, constants = dict[str, Shape](), dict[str, Array]()
    for node in graph.nodes:
        move = writers.get(node.inputs[0]) if _is_function(graph, node) else None
        if move is not None and node.output not in turned_again and _is_of_a_product(move, writers):
            continue
        while move is not None and move.op in _MOVES and counts[move.output] == 1 and _is_free(graph, move):
            inner = move.output  # its shape becomes the one before the move
            shapes[inner] = shapes.get(move.inputs[0], graph.shapes[move.inputs[0]])
            numbers = [f"{name}.number{len(shapes[inner])}" for name in node.inputs[1:]]
            for name, number in zip(node.inputs[1:], numbers, strict=True):
                array = constants[name] if name in constants else graph.constants[name]
                constants[number] = array.reshape((1,) * len(shapes[inner]))
            before = replace(node, inputs=(*move.inputs, *numbers), outputs=(inner,))
            behind = replace(move, inputs=(inner,), outputs=node.outputs)
            placed[inner], placed[node.output] = before, behind
            writers[inner], writers[node.output] = before, behind
            node, move = before, writers.get(before.inputs[0])
    return rebuilt(graph, list(placed.values()), shapes=shapes, constants=constants)


def _is_of_a_product(move: Node | None, writers: Mapping[str, Node]) -> bool:
    """Return whether moves begin behind a product of two tensors, or the attention that it became."""
    while move is not None and move.op in _MOVES:
        move = writers.get(move.inputs[0])
    return move is not None and move.op in ("matmul", "attention")


def _is_function(graph: Graph, node: Node) -> bool:
    """Return whether a node computes each element of one tensor, perhaps with numbers."""
    x, *others = node.inputs
    numbers = all(name in graph.constants and graph.constants[name].size == 1 for name in others)
    alike = numbers and graph.shapes[x] == graph.shapes[node.output] and graph.types[x] == graph.types[node.output]
    return node.op in ACTIVATIONS or (node.op in ("map", "add", "mul") and alike and x not in graph.constants)


def _is_free(graph: Graph, move: Node) -> bool:
    return graph.types[move.output] == graph.types[move.inputs[0]]


def _compose(graph: Graph) -> Graph:
    """A transposition of a transposition is one transposition of the first one's source, also through reshapes."""
    writers = producers(graph)
    looks: dict[str, Look] = {}
    nodes: list[Node] = []
    shapes: dict[str, Shape] = {}
    for node in graph.nodes:
        first = writers.get(node.inputs[0])
        if node.op == "transpose" and first is not None and first.op == "transpose":
            perm = tuple(first.attributes["perm"][p] for p in node.attributes["perm"])
            node = replace(node, inputs=first.inputs, attributes={"perm": perm})
            writers[node.output] = node
        root, axes, turns = look(graph, node, looks)
        found = looks[node.output] = root, axes, turns
        whole = at_once(graph, node, found, shapes) if node.op == "transpose" and turns > 1 else None
        nodes += whole or [node]
    return rebuilt(graph, nodes, shapes=shapes)


Look = tuple[str, Sequence[Axis], int]
"""A tensor that reshapes and transpositions make of another one: this one, where its elements are, transpositions."""


def look(graph: Graph, node: Node, looks: Mapping[str, Look]) -> Look:
    """Return what a node makes of the tensor that these looks know; of itself where it is no move."""
    shape, source = graph.shapes[node.output], node.inputs[0] if node.inputs else ""
    if node.op in _MOVES and graph.types[source] == graph.types[node.output]:
        root, axes, turns = looks.get(source) or whole(graph, source)
        if node.op == "transpose":
            return root, [axes[p] for p in node.attributes["perm"]], turns + 1
        if (parts := reshaped(axes, shape)) is not None:
            return root, parts, turns
    return whole(graph, node.output)


def whole(graph: Graph, name: str) -> Look:
    """Return a tensor as itself."""
    shape = graph.shapes[name]
    return name, [((extent, stride),) for extent, stride in zip(shape, natural(shape), strict=True)], 0


def merged(axes: Sequence[Axis]) -> list[tuple[int, int]]:
    """Return extents above 1 and strides, as few as they are: an axis whose next one goes on where it ends is one."""
    parts: list[tuple[int, int]] = []
    for extent, stride in [part for axis in axes for part in axis if part[0] > 1]:
        if parts and parts[-1][1] == extent * stride:
            extent *= parts.pop()[0]
        parts.append((extent, stride))
    return parts


def at_once(graph: Graph, last: Node, look: Look, shapes: dict[str, Shape]) -> list[Node] | None:
    """Return reshape, transposition and reshape that do the same; None where that takes too many axes."""
    root, axes, _ = look
    parts = merged(axes)
    order = sorted(range(len(parts)), key=lambda index: -parts[index][1])
    end = replace(last, op="reshape", attributes={"shape": graph.shapes[last.output]})
    if order == [*range(len(parts))]:
        return [replace(end, inputs=(root,))]
    if len(parts) > _MOST_AXES:
        return None
    split, turned = (fresh(graph, f"{last.output}.{word}") for word in ("split", "moved"))
    shapes |= {split: tuple(parts[index][0] for index in order), turned: tuple(extent for extent, _ in parts)}
    perm = tuple(order.index(index) for index in range(len(parts)))
    return [
        replace(end, inputs=(root,), outputs=(split,), attributes={"shape": shapes[split]}),
        replace(last, op="transpose", inputs=(split,), outputs=(turned,), attributes={"perm": perm}),
        replace(end, inputs=(turned,)),
    ]


def _as_reshapes(graph: Graph) -> Graph:
    """Axes of one element stay where they are, and a reshape moves them."""
    nodes: list[Node] = []
    shapes: dict[str, Shape] = {}
    for node in graph.nodes:
        if node.op == "transpose":
            before, perm = graph.shapes[node.inputs[0]], node.attributes["perm"]
            long_axes = iter([axis for axis in perm if before[axis] > 1])
            plain = tuple(axis if before[axis] == 1 else next(long_axes) for axis in range(len(perm)))
            if plain != tuple(perm):
                turned = node.inputs[0]
                if not moves_no_data(before, perm):
                    turned = fresh(graph, f"{node.output}.turned")
                    shapes[turned] = tuple(before[axis] for axis in plain)
                    nodes.append(replace(node, outputs=(turned,), attributes={"perm": plain}))
                attributes = {"shape": graph.shapes[node.output]}
                node = replace(node, op="reshape", inputs=(turned,), attributes=attributes)
        nodes.append(node)
    return rebuilt(graph, nodes, shapes=shapes)


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
