"""Let the node before an activation apply it."""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.activations import ACTIVATIONS, activation_of
from kernels.ir.graph import Graph, Node
from kernels.ir.links import use_counts
from kernels.passes.rewrite import rebuilt

TAKES_ACTIVATION = ("conv", "dense", "add", "mul", "affine", "instance_norm")


def fuse_activations(graph: Graph) -> Graph:
    """One of `TAKES_ACTIVATION` that only an activation reads writes the activated result."""
    counts = use_counts(graph)
    nodes: list[Node] = []
    place: dict[str, int] = {}
    for node in graph.nodes:
        index = place.get(node.inputs[0]) if node.op in ACTIVATIONS else None
        if index is not None and _fits(nodes[index]) and counts[node.inputs[0]] == 1:
            before = nodes[index]
            attributes = {**before.attributes, "activation": activation_of(node)}
            nodes[index] = replace(before, outputs=node.outputs, attributes=attributes)
            place[node.output] = index
        else:
            place[node.output] = len(nodes)
            nodes.append(node)
    return rebuilt(graph, nodes)


def _fits(node: Node) -> bool:
    return node.op in TAKES_ACTIVATION and node.attributes.get("activation") is None
