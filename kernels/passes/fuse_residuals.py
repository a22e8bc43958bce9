"""Let a convolution add the residual branch before its activation."""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts

from .rewrite import rebuilt


def fuse_residuals(graph: Graph) -> Graph:
    """add(conv, other), where only the add reads the conv: the conv takes `other` as residual, in the add's place."""
    counts, writers = use_counts(graph), producers(graph)
    fused: dict[str, Node] = {}
    gone: set[str] = set()
    for node in graph.nodes:
        candidates = [writers[name] for name in node.inputs if node.op == "add" and name in writers]
        free = [conv for conv in candidates if _is_free(conv) and counts[conv.output] == 1]
        if free and same_shapes(graph, node):
            fused[node.output] = _with_residual(free[0], node)
            gone.add(free[0].output)
    return rebuilt(graph, [fused.get(node.output, node) for node in graph.nodes if node.output not in gone])


def _is_free(node: Node) -> bool:
    return node.op == "conv" and len(node.inputs) <= 3 and node.attributes.get("activation") is None


def same_shapes(graph: Graph, add: Node) -> bool:
    """Return whether a sum is of two activations of one shape."""
    a, b = add.inputs
    return graph.shapes[a] == graph.shapes[b] and not {a, b} & set(graph.constants)


def _with_residual(conv: Node, add: Node) -> Node:
    residual = next(name for name in add.inputs if name != conv.output)
    bias = conv.inputs[2] if len(conv.inputs) > 2 else ""
    attributes = {**conv.attributes, **add.attributes}
    return replace(conv, inputs=(*conv.inputs[:2], bias, residual), outputs=add.outputs, attributes=attributes)
