"""A sum or mean of squares is one reduction, which multiplies each element with itself: squares are never stored.

In halves they would be infinite from 256 on, and nothing below 2.4e-4; a reduction adds up in single.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernels.ir.expressions import with_operands
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.passes.fuse_maps import expression_of
from kernels.passes.rewrite import prune, rebuilt


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
