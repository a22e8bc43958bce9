"""Layers that are computed in 8 bits take the scale and the zero point that a model's QDQ nodes give to their input.

Method: ONNX's QuantizeLinear, q = saturate(round(x / scale) + zero), and DequantizeLinear, (q - zero) * scale.
"""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.lower.cpu.algorithms import in_int8
from kernels.options import Options

from .prune import prune
from .rewrite import producers, rebuilt

_LEVELS = 255
"""From the least to the largest number of 8 bits."""


def quantized_inputs(graph: Graph, options: Options) -> Graph:
    """Such a layer reads what its QuantizeLinear read, with the attribute `input_steps`: scale, and 0 as uint8."""
    by = producers(graph)
    nodes = [_with_steps(node, by) if in_int8(options, graph, node) else node for node in graph.nodes]
    return prune(rebuilt(graph, nodes))


def _with_steps(node: Node, by: dict[str, Node]) -> Node:
    back = by.get(node.inputs[0])
    there = by.get(back.inputs[0]) if back is not None and back.op == "map" else None
    if back is None or there is None or there.op != "map":
        return node
    match there.attributes["expression"], back.attributes["expression"]:
        case (
            ("min", ("max", ("add", ("round", ("div", "a", float(scale))), float(zero)), float(low)), float(high)),
            ("mul", ("sub", "a", float(same_zero)), float(same_scale)),
        ) if (scale, zero) == (same_scale, same_zero) and scale > 0 and high - low == _LEVELS:
            attributes = {**node.attributes, "input_steps": (scale, int(zero - low))}
            return replace(node, inputs=(there.inputs[0], *node.inputs[1:]), attributes=attributes)
    return node
