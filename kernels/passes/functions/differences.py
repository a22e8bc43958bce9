"""Differences and variances in one spelling each, as normalisations of rows and groups are found by it.

x + -y is x - y. The mean of squares less the square of the mean is the mean of squared distances from the mean, which
loses no digits where the mean is large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.ir.shapes import Shape
from kernels.passes.fuse_maps import expression_of
from kernels.passes.rewrite import fresh, prune, rebuilt
from kernels.passes.rows.roots import mean_over, statistic_of

from .sums_of_squares import squared_of

_LESS = {"expression": ("sub", "a", "b")}


def differences(graph: Graph) -> Graph:
    """Rewrite sums with what is negated, and variances."""
    writers, nodes, shapes = producers(graph), list[Node](), dict[str, Shape]()
    for node in graph.nodes:
        new = writers[node.output] = _difference(node, writers)
        mean, reduced = _variance(graph, new, writers)
        if reduced is not None:
            x, name = reduced.inputs[0], fresh(graph, f"{node.output}.distance")
            shapes[name] = graph.shapes[x]
            nodes.append(Node(node.name, "map", (x, mean), (name,), _LESS))
            new = replace(reduced, name=node.name, inputs=(name,), outputs=node.outputs)
        nodes.append(new)
    return prune(rebuilt(graph, nodes, shapes=shapes))


def _difference(node: Node, writers: Mapping[str, Node]) -> Node:
    if expression_of(node) == ("add", "a", "b"):
        for x, other in (node.inputs, node.inputs[::-1]):
            negated = writers.get(other)
            if negated is not None and expression_of(negated) == ("neg", "a"):
                return replace(node, op="map", inputs=(x, negated.inputs[0]), attributes=_LESS)
    return node


def _variance(graph: Graph, node: Node, writers: Mapping[str, Node]) -> tuple[str, Node | None]:
    """The mean, and the mean of squares, of which a node computes the variance."""
    if expression_of(node) != ("sub", "a", "b"):
        return "", None
    expression, reduced = statistic_of(graph, node.inputs[0], writers) or ("", None)
    mean = squared_of(writers.get(node.inputs[1]))
    if reduced is None or mean is None or expression != "a" or not reduced.attributes.get("squared"):
        return "", None
    shape, a = graph.shapes[reduced.output], reduced.attributes
    is_one = a["kind"] == "mean" and mean_over(graph, mean, reduced.inputs[0], writers) == (a["start"], a["stop"])
    return (mean, reduced) if is_one and shape == graph.shapes[mean] == graph.shapes[node.output] else ("", None)
