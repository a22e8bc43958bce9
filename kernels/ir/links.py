"""The writers and readers of the tensors of a graph."""

from __future__ import annotations

from collections import Counter

from .graph import Graph, Node


def use_counts(graph: Graph) -> Counter[str]:
    """Count how often each tensor is read; being an output of the graph counts as a read."""
    return Counter([*(name for node in graph.nodes for name in node.inputs), *graph.outputs])


def producers(graph: Graph) -> dict[str, Node]:
    """Tensor -> the node that writes it."""
    return {output: node for node in graph.nodes for output in node.outputs}


def readers(graph: Graph) -> dict[str, list[Node]]:
    """Tensor -> the nodes that read it, each once."""
    found: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in dict.fromkeys(node.inputs):
            found.setdefault(name, []).append(node)
    return found
