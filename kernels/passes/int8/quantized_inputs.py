"""Layers that are computed in 8 bits take the scale and the zero point that a model's QDQ nodes give to their input.

Method: ONNX's QuantizeLinear, q = saturate(round(x / scale) + zero), and DequantizeLinear, (q - zero) * scale.
A tensor on such a grid stays on it where elements are only moved or the largest of some is taken, and being put there
once more changes nothing: of two equal pairs with nothing but that between, the first goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.lower.cpu.algorithms import in_int8
from kernels.options import Options
from kernels.passes.prune import prune
from kernels.passes.rewrite import rebuilt

_LEVELS = 255
"""Steps between the least and the largest number of 8 bits."""
_KEEP_GRID = frozenset({"concat", "max_pool", "relu", "reshape", "slice", "transpose"})
Steps = tuple[float, int]
"""Scale, and 0 as uint8."""


def quantized_inputs(graph: Graph, options: Options) -> Graph:
    """Let such a layer read what its QuantizeLinear read, with the attribute `input_steps`."""
    by, uses = producers(graph), use_counts(graph)
    for node in graph.nodes:
        found = qdq_pair(by, node.inputs[0]) if in_int8(options, graph, node) else None
        if found:
            source, steps = found
            _skip_equal(by, uses, source, steps)
            attributes = {**node.attributes, "input_steps": steps}
            by[node.output] = replace(node, inputs=(source, *node.inputs[1:]), attributes=attributes)
    return prune(rebuilt(graph, [by[node.output] for node in graph.nodes]))


def qdq_pair(by: Mapping[str, Node], tensor: str) -> tuple[str, Steps] | None:
    """Return what a QDQ pair before a tensor read, and its steps; None: there is no pair."""
    back = by.get(tensor)
    there = by.get(back.inputs[0]) if back is not None and back.op == "map" and back.inputs else None
    if back is None or there is None or there.op != "map":
        return None
    match there.attributes["expression"], back.attributes["expression"]:
        case (
            ("min", ("max", ("add", ("round", ("div", "a", float(scale))), float(zero)), float(low)), float(high)),
            ("mul", ("sub", "a", float(same_zero)), float(same_scale)),
        ) if (scale, zero) == (same_scale, same_zero) and scale > 0 and high - low == _LEVELS:
            return there.inputs[0], (scale, int(zero - low))
    return None


def _skip_equal(by: dict[str, Node], uses: Counter[str], tensor: str, steps: Steps) -> None:
    """Remove pairs of these steps from nodes that nobody else reads and that a tensor is made of: it needs none."""
    waiting = [tensor]
    while waiting:
        node = by.get(waiting.pop())
        if node is None or node.op not in _KEEP_GRID or uses[node.output] > 1:
            continue
        pairs = [qdq_pair(by, name) for name in node.inputs]
        inputs = tuple(
            pair[0] if pair and pair[1] == steps else name for name, pair in zip(node.inputs, pairs, strict=True)
        )
        by[node.output] = replace(node, inputs=inputs)
        waiting += inputs
