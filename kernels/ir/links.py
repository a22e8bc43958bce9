"""The writers and readers of the tensors of a graph."""

from __future__ import annotations

from collections import Counter

import numpy as np

from .graph import Graph, Node


def use_counts(graph: Graph) -> Counter[str]:
    """Count how often each tensor is read; being an output of the graph counts as a read."""
    return Counter([*(name for node in graph.nodes for name in node.inputs), *graph.outputs])


def producers(graph: Graph) -> dict[str, Node]:
    """Tensor -> the node that writes it."""
    return {output: node for node in graph.nodes for output in node.outputs}


def dense_readers(graph: Graph, name: str) -> list[Node] | None:
    """Return the dense layers that read a tensor's rows, which its writer may leave in any order then, through reshapes
    that keep the last axis; None where something else reads them."""
    found: list[Node] = []
    for reader in graph.consumers(name):
        if reader.op == "reshape" and graph.shapes[reader.output][-1:] == graph.shapes[name][-1:]:
            behind = dense_readers(graph, reader.output)
            if behind is None:
                return None
            found += behind
        elif reader.op == "dense" and reader.inputs.count(name) == 1 and reader.inputs[0] == name:
            found.append(reader)
        else:
            return None
    return None if name in graph.outputs else found


def is_root_mean_square(graph: Graph, node: Node) -> bool:
    """Return whether a node divides rows by the root of their mean square, and scales them by constants, and no more
    (RMSNorm, Zhang and Sennrich 2019): what reads them can do so on the way."""
    a = node.attributes
    if node.op != "row_norm" or len(node.inputs) != 3 or a.get("centred", True) or a.get("least") or a.get("of_image"):
        return False
    constants = [graph.constants.get(name) for name in node.inputs[1:]]
    return constants[0] is not None and constants[1] is not None and not np.any(constants[1])
