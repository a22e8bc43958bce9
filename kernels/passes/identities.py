"""Take out what does nothing: reshapes to the same shape (Dropout, Identity), reshapes of reshapes, single concats,
slices of all there is, pads of nothing, pools of single pixels."""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts

from .rewrite import prune, rebuilt, renamed


def eliminate_identities(graph: Graph) -> Graph:
    """Readers of an identity read its source, and what nobody reads goes. Outputs of the graph keep their names."""
    return _bypass(prune(_join_reshapes(graph)))


def _is_identity(graph: Graph, node: Node) -> bool:
    if graph.types[node.inputs[0]] != graph.types[node.output]:
        return False
    if node.op == "reshape":
        return graph.shapes[node.inputs[0]] == graph.shapes[node.output]
    if node.op == "transpose":
        return tuple(node.attributes["perm"]) == tuple(range(len(node.attributes["perm"])))
    if node.op == "slice":
        return graph.shapes[node.inputs[0]] == graph.shapes[node.output]
    if node.op in ("max_pool", "average_pool"):
        return node.attributes["kernel"] == (1, 1) == node.attributes["strides"] and not any(node.attributes["pads"])
    if node.op == "pad":
        return not any(node.attributes["pads"])
    return node.op == "concat" and len(node.inputs) == 1


def _join_reshapes(graph: Graph) -> Graph:
    """A reshape of a reshape reads the first one's source, unless that has another type."""
    sources: dict[str, str] = {}
    nodes = []
    for node in graph.nodes:
        new = renamed(node, sources) if node.op == "reshape" else node
        if node.op == "reshape" and graph.types[new.inputs[0]] == graph.types[node.output]:
            sources[node.output] = new.inputs[0]
        nodes.append(new)
    return rebuilt(graph, nodes) if sources else graph


def _bypass(graph: Graph) -> Graph:
    sources: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        new = renamed(node, sources)
        if _is_identity(graph, new) and new.output not in graph.outputs:
            sources[new.output] = new.inputs[0]
        else:
            nodes.append(new)
    return _absorb_outputs(rebuilt(graph, nodes) if sources else graph)


def _absorb_outputs(graph: Graph) -> Graph:
    """Let a node write an output's name itself, where an identity behind it only gives the name."""
    counts, writers = use_counts(graph), producers(graph)
    names: dict[str, str] = {}
    gone = set()
    for node in graph.nodes:
        source = node.inputs[0]
        if _is_identity(graph, node) and source in writers and counts[source] == 1 and source not in names:
            names[source] = node.output
            gone.add(node.output)
    if not gone:
        return graph
    nodes = [
        replace(node, outputs=tuple(names.get(name, name) for name in node.outputs))
        for node in graph.nodes
        if node.output not in gone
    ]
    return rebuilt(graph, nodes)
