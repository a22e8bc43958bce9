"""A sum or mean of squares is one reduction, which multiplies each element with itself: squares are never stored.

In halves they would be infinite from 256 on, and nothing below 2.4e-4; a reduction adds up in single. Differences and
variances have one spelling, by which normalisations are found: the mean of squares less the square of the mean is the
mean of squared distances from the mean, which loses no digits where the mean is large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernels.ir.activations import expression_of
from kernels.ir.expressions import with_operands
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, prune, rebuilt
from kernels.passes.rows.roots import mean_over, statistic_of

_LESS = {"expression": ("sub", "a", "b")}


def sums_of_squares(graph: Graph) -> Graph:
    """map, mean or sum -> reduce with attribute `squared`; what is computed of reductions and constants alone is maps,
    whose results halves need not hold."""
    writers, nodes, reduced = producers(graph), list[Node](), set[str]()
    for node in graph.nodes:
        computed = {*node.inputs} - graph.constants.keys()
        expression = expression_of(node) if computed and computed <= reduced else None
        new = _squared(node, writers)
        if expression is not None:
            new = replace(node, op="map", attributes={"expression": expression})
        if new.op == "reduce" or expression is not None:
            reduced.add(new.output)
        nodes.append(new)
    return prune(rebuilt(graph, nodes))


def _squared(node: Node, writers: Mapping[str, Node]) -> Node:
    a = {"kind": "mean", "start": 2, "stop": 4} if node.op == "global_average_pool" else node.attributes
    is_sum = node.op in ("reduce", "global_average_pool") and a["kind"] in ("sum", "mean") and "squared" not in a
    root = squared_of(writers.get(node.inputs[0])) if is_sum else None
    return node if root is None else replace(node, op="reduce", inputs=(root,), attributes={**a, "squared": True})


def squared_of(node: Node | None) -> str | None:
    """Return the tensor that a node multiplies with itself."""
    expression = expression_of(node) if node is not None and len(set(node.inputs)) == 1 else None
    is_square = expression is not None and with_operands(expression, {"a": "a", "b": "a"}) == ("mul", "a", "a")
    return node.inputs[0] if node is not None and is_square else None


def differences(graph: Graph) -> Graph:
    """x + -y -> x - y."""
    writers = producers(graph)
    return prune(rebuilt(graph, [_difference(node, writers) for node in graph.nodes]))


def variances(graph: Graph) -> Graph:
    """Variances as means of squared distances."""
    writers, nodes, shapes = producers(graph), list[Node](), dict[str, Shape]()
    for node in graph.nodes:
        mean, reduced = _variance(graph, node, writers)
        if reduced is not None:
            x, name = reduced.inputs[0], fresh(graph, f"{node.output}.distance")
            shapes[name] = graph.shapes[x]
            nodes.append(Node(node.name, "map", (x, mean), (name,), _LESS))
            node = replace(reduced, name=node.name, inputs=(name,), outputs=node.outputs)
        nodes.append(node)
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
