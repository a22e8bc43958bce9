"""Multiply a product by a number once, where exporters multiply its operands: attention scales queries and keys."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.ir.shapes import Shape
from kernels.passes.prune import prune
from kernels.passes.rewrite import fresh, rebuilt
from kernels.passes.rows.strided_looks import multiplied


def product_factors(graph: Graph) -> Graph:
    """matmul(a * number, b * number) -> matmul(a, b) * number."""
    writers, nodes, shapes = producers(graph), list[Node](), dict[str, Shape]()
    for node in graph.nodes:
        found = [multiplied(graph, writers[name]) if name in writers else None for name in node.inputs]
        if node.op != "matmul" or not any(found):
            nodes.append(node)
            continue
        inputs = tuple(one[0] if one else name for one, name in zip(found, node.inputs, strict=True))
        product = fresh(graph, f"{node.output}.unscaled")
        shapes[product] = graph.shapes[node.output]
        factor = float(np.float32(prod(one[1] for one in found if one)))
        nodes.append(replace(node, inputs=inputs, outputs=(product,)))
        nodes.append(Node(node.name, "map", (product,), node.outputs, {"expression": ("mul", "a", factor)}))
    return prune(rebuilt(graph, nodes, shapes=shapes)) if shapes else graph
