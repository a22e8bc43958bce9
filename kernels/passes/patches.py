"""A convolution whose windows lie side by side, and whose pixels become rows behind it, is a product of patches."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import use_counts
from kernels.ir.shapes import Shape
from kernels.ir.taking import joined

from .rewrite import fresh, prune, rebuilt


def patches(graph: Graph) -> Graph:
    """conv, [reshape,] transpose -> take, dense: a vision transformer's first layer.

    Only where stacks of four channels would not be full: a convolution reads them whole.
    """
    counts = use_counts(graph)
    found: dict[str, list[Node]] = {}
    constants: dict[str, Array] = {}
    shapes: dict[str, Shape] = {}
    for conv in graph.nodes:
        last = _turned(graph, conv, counts[conv.output]) if conv.op == "conv" and _is_whole(graph, conv) else None
        if last is None:
            continue
        (n, c, h, w), (m, _, kh, kw) = graph.shapes[conv.inputs[0]], graph.shapes[conv.inputs[1]]
        extents, strides = (n, h // kh, w // kw, c, kh, kw), (c * h * w, kh * w, kw, h * w, w, 1)
        rows, depth = prod(extents[:3]), prod(extents[3:])
        taken, flat, sums, table, weight = (
            fresh(graph, f"{conv.output}.{word}") for word in ("patches", "rows", "sums", "table", "weight")
        )
        shapes |= {taken: extents, flat: (rows, depth), sums: (rows, m)}
        constants[table] = joined(np.arange(extent, dtype=np.float32) for extent in extents)
        constants[weight] = np.ascontiguousarray(graph.constants[conv.inputs[1]].reshape(m, depth).T)
        places = {"shape": extents, "strides": strides, "value": 0.0}
        found[last.output] = [
            Node(f"{conv.name}.patches", "take", (conv.inputs[0], table), (taken,), places),
            Node(f"{conv.name}.rows", "reshape", (taken,), (flat,), {"shape": shapes[flat]}),
            Node(conv.name, "dense", (flat, weight, *conv.inputs[2:]), (sums,)),
            Node(last.name, "reshape", (sums,), last.outputs, {"shape": graph.shapes[last.output]}),
        ]
    nodes = [each for node in graph.nodes for each in found.get(node.outputs[0] if node.outputs else "", [node])]
    return prune(rebuilt(graph, nodes, constants=constants, shapes=shapes)) if found else graph


def _is_whole(graph: Graph, conv: Node) -> bool:
    """Return whether its windows lie side by side and leave no pixel out, each of whole vectors but not of whole
    stacks."""
    a = conv.attributes
    (c, h, w), (_, _, kh, kw) = graph.shapes[conv.inputs[0]][1:], graph.shapes[conv.inputs[1]]
    side_by_side = tuple(a["strides"]) == (kh, kw) and not any(a["pads"]) and set(a["dilations"]) == {1}
    plain = a["groups"] == 1 and a.get("activation") is None and conv.inputs[1] in graph.constants
    whole = h % kh == 0 and w % kw == 0 and kh * kw > 1
    return side_by_side and plain and whole and len(conv.inputs) <= 3 and c % 4 != 0 and c * kh * kw % 4 == 0


def _turned(graph: Graph, conv: Node, uses: int) -> Node | None:
    """The transposition by which all pixels of the convolution become rows; None where there is none."""
    readers = graph.consumers(conv.output) if uses == 1 else []
    if not readers or len(readers) != 1:
        return None
    (node,) = readers
    n, m, h, w = graph.shapes[conv.output]
    if node.op == "reshape" and graph.shapes[node.output] == (n, m, h * w):
        readers = graph.consumers(node.output)
        if node.output in graph.outputs or len(readers) != 1:
            return None
        (node,) = readers
    turns = {(n, m, h * w): (0, 2, 1), (n, m, h, w): (0, 2, 3, 1)}
    is_turned = node.op == "transpose" and tuple(node.attributes["perm"]) == turns.get(graph.shapes[node.inputs[0]])
    return node if is_turned else None
