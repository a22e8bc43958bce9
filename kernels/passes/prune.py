"""Drop nodes whose results nobody reads."""

from __future__ import annotations

from kernels.ir.graph import Graph, Node

from .rewrite import rebuilt


def prune(graph: Graph) -> Graph:
    """Keep the nodes that an output depends on; inputs stay, so that the ports do not change."""
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    return rebuilt(graph, kept[::-1])
