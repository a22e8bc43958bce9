"""Multiply a product by a number once, where exporters multiply its operands: attention scales queries and keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers
from kernels.passes.prune import prune
from kernels.passes.rewrite import fresh, rebuilt
from kernels.passes.rows.strided_looks import multiplied


def product_factors(graph: Graph) -> Graph:
    """matmul(a * number, b * number) -> matmul(a, b) * number."""
    writers, constants, nodes = producers(graph), dict[str, Array](), list[Node]()
    shapes = {}
    for node in graph.nodes:
        found = [multiplied(graph, writers[name]) if name in writers else None for name in node.inputs]
        if node.op != "matmul" or not any(found):
            nodes.append(node)
            continue
        inputs = tuple(one[0] if one else name for one, name in zip(found, node.inputs, strict=True))
        product, number = (fresh(graph, f"{node.output}.{word}") for word in ("unscaled", "factor"))
        constants[number] = np.array([np.prod([one[1] for one in found if one])], np.float32)
        shapes[product] = graph.shapes[node.output]
        nodes.append(replace(node, inputs=inputs, outputs=(product,)))
        nodes.append(Node(node.name, "mul", (product, number), node.outputs))
    return prune(rebuilt(graph, nodes, constants=constants, shapes=shapes)) if constants else graph
