"""Maps spread their operands themselves: a copy that repeats one along axes of one element is left out."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from kernels.ir.activations import as_map, expression_of
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.ir.strides import MAX_AXES, strided
from kernels.ir.taking import split_table
from kernels.passes.rewrite import prune, rebuilt


def drop_spreads(graph: Graph) -> Graph:
    """take, map -> map that reads what the take repeats (ONNX's Expand), where its result keeps its shape; of a sum or
    a product it makes a map, as it is one where nothing is repeated before it."""
    writers = producers(graph)
    spread: dict[str, bool] = {}

    def source(name: str) -> str:
        node = writers.get(name)
        if node is None or node.op != "take":
            return name
        if name not in spread:
            spread[name] = _is_spread(graph, node)
        return node.inputs[0] if spread[name] else name

    nodes = []
    for node in graph.nodes:
        inputs = tuple(map(source, node.inputs)) if expression_of(node) is not None else node.inputs
        reads = inputs != node.inputs and _fits(graph, node, inputs)
        nodes.append(replace(node if node.op == "map" else as_map(node), inputs=inputs) if reads else node)
    return prune(rebuilt(graph, nodes)) if spread else graph


def _fits(graph: Graph, node: Node, inputs: tuple[str, ...]) -> bool:
    shape, operands = graph.shapes[node.output], [graph.shapes[name] for name in inputs]
    return np.broadcast_shapes(*operands) == shape and len(strided(shape, operands).extents) <= MAX_AXES


def _is_spread(graph: Graph, node: Node) -> bool:
    """Return whether a take does no more than to repeat its source along axes of one element."""
    shape = tuple(node.attributes["shape"])
    given = (1,) * (len(shape) - len(graph.shapes[node.inputs[0]])) + graph.shapes[node.inputs[0]]
    tables = split_table(graph.constants[node.inputs[1]], shape)
    if len(given) != len(shape):
        return False
    for axis, (extent, stride) in enumerate(zip(given, node.attributes["strides"], strict=True)):
        places = tables[axis] * stride
        is_whole = np.array_equal(places, np.arange(extent) * prod(given[axis + 1 :]))
        if not is_whole and (extent > 1 or places.any() or (tables[axis] < 0).any()):
            return False
    return True
