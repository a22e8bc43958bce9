"""The parts of passes: pure edits of a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape


def rebuilt(
    graph: Graph,
    nodes: Sequence[Node],
    *,
    constants: Mapping[str, Array] | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> Graph:
    """The graph with other nodes and, beside its own, new constants and shapes; what is no longer used is dropped."""
    all_constants = {**graph.constants, **(constants or {})}
    all_shapes = {**graph.shapes, **(shapes or {}), **{name: a.shape for name, a in (constants or {}).items()}}
    used = {*graph.inputs, *graph.outputs, *(name for node in nodes for name in (*node.inputs, *node.outputs))}
    return replace(
        graph,
        nodes=list(nodes),
        constants={name: array for name, array in all_constants.items() if name in used},
        shapes={name: shape for name, shape in all_shapes.items() if name in used},
        types={name: kind for name, kind in graph.types.items() if name in used},
    )


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """The node reading other tensors."""
    if names.keys().isdisjoint(node.inputs):
        return node
    return replace(node, inputs=tuple(names.get(name, name) for name in node.inputs))


def prune(graph: Graph) -> Graph:
    """Keep the nodes that an output depends on; inputs stay, so that the ports do not change."""
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    return rebuilt(graph, kept[::-1])


def once(graph: Graph, ops: Collection[str]) -> Graph:
    """Nodes of these operations that compute the same become one."""
    names: dict[str, str] = {}
    seen: dict[tuple[object, ...], str] = {}
    nodes: list[Node] = []
    for each in graph.nodes:
        node = renamed(each, names)
        if node.op in ops and node.output not in graph.outputs:
            key = (node.op, node.inputs, graph.types[node.output], repr(sorted(node.attributes.items())))
            first = seen.setdefault(key, node.output)
            if first != node.output:
                names[node.output] = first
                continue
        nodes.append(node)
    return rebuilt(graph, nodes) if names else graph


def fresh(graph: Graph, base: str) -> str:
    """A tensor name that the graph does not use."""
    name = base
    while name in graph.shapes:
        name += "_"
    return name
