"""Let a layer compute the function of its result that only a map reads, while it is at hand."""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.lower.activation import AT_END
from kernels.passes.identities import eliminate_identities
from kernels.passes.rewrite import rebuilt

LAYERS = ("conv", "dense")
_ENDED = {"activation", "ending", "output_steps"}
"""Attributes of a layer that does something with its result already."""


def end_layers(graph: Graph) -> Graph:
    """The function, one of `AT_END`, becomes the layer's activation, a reshape between them stays behind it."""
    counts, writers = use_counts(graph), producers(graph)
    changed: dict[str, Node] = {}
    for node in graph.nodes:
        name = next((name for name, (_, meant) in AT_END.items() if node.attributes.get("expression") == meant), "")
        layer = writers.get(node.inputs[0]) if name else None
        while layer is not None and layer.op == "reshape" and counts[layer.output] == 1:
            layer = writers.get(layer.inputs[0])
        if layer is None or layer.op not in LAYERS or counts[layer.output] != 1:
            continue
        if layer.attributes.keys() & _ENDED:
            continue
        changed[layer.output] = replace(layer, attributes={**layer.attributes, "activation": (name,)})
        shape = graph.shapes[node.output]
        changed[node.output] = Node(node.name, "reshape", node.inputs, node.outputs, {"shape": shape})
    nodes = [changed.get(node.output, node) for node in graph.nodes]
    return eliminate_identities(rebuilt(graph, nodes)) if changed else graph
