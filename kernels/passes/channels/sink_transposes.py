"""Move transpositions behind what is computed of each element, so that rows of channels stay rows.

A ConvNeXt block ends in rows of channels, turns them into images, scales each channel and adds the image before the
block. Scaled and summed as rows, with the transposition behind, the block's last dense layer does both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.dims import TO_IMAGE, TO_ROWS, is_turn
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import use_counts
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, prune, rebuilt

_OF_EACH_ELEMENT = frozenset({"add", "mul", *ACTIVATIONS})


def sink_transposes(graph: Graph) -> Graph:
    """op(transpose(a), transpose(b) or a constant) -> transpose(op(a, b)), where one of these has no other reader.

    To the rows of a dense layer another image is added as rows, too: what is added to the sum later finds these.
    """
    counts = use_counts(graph)
    turns: dict[str, str] = {}
    dense: set[str] = set()
    shapes: dict[str, Shape] = {}
    constants: dict[str, Array] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        others = [name for name in node.inputs if name not in turns and name not in graph.constants]
        if not _saves(graph, node, turns, counts) or (others and not _ends(node, others, turns, dense)):
            nodes.append(node)
            if node.op == "dense" or (node.op == "reshape" and node.inputs[0] in dense):
                dense.add(node.output)
            if is_turn(node, TO_IMAGE):
                turns[node.output] = node.inputs[0]
            continue
        n, c, h, w = graph.shapes[node.output]
        for name in others:
            turns[name] = fresh(graph, f"{name}.as_rows")
            shapes[turns[name]] = n, h, w, c
            nodes.append(Node(f"{name}.as_rows", "transpose", (name,), (turns[name],), {"perm": TO_ROWS}))
        inputs = [turns.get(name) or fresh(graph, f"{node.output}.constant") for name in node.inputs]
        constants |= {
            new: _of_rows(graph.constants[name])
            for new, name in zip(inputs, node.inputs, strict=True)
            if name in graph.constants
        }
        inner = turns[node.output] = fresh(graph, f"{node.output}.rows")
        shapes[inner] = n, h, w, c
        dense |= {inner} if set(inputs) & dense else set()
        nodes.append(replace(node, inputs=tuple(inputs), outputs=(inner,)))
        nodes.append(Node(node.name, "transpose", (inner,), node.outputs, {"perm": TO_IMAGE}))
    return prune(rebuilt(graph, nodes, shapes=shapes, constants=constants)) if shapes else graph


def _saves(graph: Graph, node: Node, turns: Mapping[str, str], counts: Mapping[str, int]) -> bool:
    """Return whether it works on images of the result's shape, one of which is read here alone as an image of rows."""
    if node.op not in _OF_EACH_ELEMENT:
        return False
    images = [name for name in node.inputs if name not in graph.constants]
    alike = all(graph.shapes[name] == graph.shapes[node.output] for name in images)
    return alike and any(name in turns and counts[name] == 1 for name in images)


def _ends(node: Node, others: Sequence[str], turns: Mapping[str, str], dense: AbstractSet[str]) -> bool:
    """Return whether a dense layer can add the other image at its end."""
    rows = [turns[name] for name in node.inputs if name in turns]
    return node.op == "add" and len(others) == 1 and rows[0] in dense


def _of_rows(constant: Array) -> Array:
    """Turn a constant that broadcasts to images into one that broadcasts alike to their rows."""
    image = constant.reshape((1,) * (4 - constant.ndim) + constant.shape)
    return np.ascontiguousarray(image.transpose(TO_ROWS))
