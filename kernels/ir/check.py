"""A graph is checked before it is lowered: kernels believe its shapes, and a wrong one would let them read beyond."""

from __future__ import annotations

from kernels.errors import ModelError

from .graph import Graph, Node
from .shapes import POOLS, output_shape
from .taking import check_table


def check_graph(graph: Graph) -> None:
    """Raise ModelError unless every node reads what is there before it, and all shapes are those that follow."""
    for name, array in graph.constants.items():
        if array.shape != graph.shapes[name]:
            raise ModelError(f"constant {name!r} has shape {array.shape}; the graph says {graph.shapes[name]}")
    known = {*graph.inputs, *graph.constants}
    for node in graph.nodes:
        missing = [name for name in node.inputs if name and name not in known]
        if missing:
            raise ModelError(f"node {node.name!r} ({node.op}) reads {missing[0]!r}, which nothing writes before it")
        _check_shape(graph, node)
        known |= set(node.outputs)
    for name, new in graph.state.items():
        told = f"the state {name!r} becomes {new!r} in a run"
        if name not in graph.inputs or new not in graph.outputs or new in (*graph.inputs, *graph.constants):
            raise ModelError(f"{told}; it is an input, which a node's output follows")
        if (graph.shapes[name], graph.types[name]) != (graph.shapes[new], graph.types[new]):
            raise ModelError(f"{told}, of another shape or type: {graph.shapes[name]} and {graph.shapes[new]}")


def _check_shape(graph: Graph, node: Node) -> None:
    found = graph.shapes[node.output]
    if node.op in POOLS and found == output_shape(node, graph.shapes, ceil=True):
        return
    expected = output_shape(node, graph.shapes)
    if found != expected:
        raise ModelError(f"node {node.name!r} ({node.op}) makes {expected}; the graph says {found}")
    if node.op == "take":
        check_table(graph, node)
    if node.op in ("add", "mul"):
        for name in node.inputs:
            if graph.shapes[name] != expected and name not in graph.constants:
                raise ModelError(
                    f"node {node.name!r} ({node.op}): operand {name!r} of shape {graph.shapes[name]} is no constant; "
                    f"expected {expected}: only constants broadcast"
                )
