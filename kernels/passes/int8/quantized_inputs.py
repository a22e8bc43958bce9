"""Layers that are computed in 8 bits take the scale and the zero point that a model's QDQ nodes give to their input.

Method: ONNX's QuantizeLinear, q = saturate(round(x / scale) + zero), and DequantizeLinear, (q - zero) * scale.
A tensor on such a grid stays on it where elements are only moved or the largest of some is taken, and being put there
once more changes nothing: of two equal pairs with nothing but that between, the first goes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.lower.cpu.algorithms import fits_int8
from kernels.lower.cpu.packing import has_grid
from kernels.options import Options
from kernels.passes.rewrite import prune, rebuilt

from .pairs import Steps, qdq_pair, rounded_input

_KEEP_GRID = frozenset({"concat", "max_pool", "relu", "reshape", "slice", "transpose"})


def quantized_inputs(graph: Graph, options: Options) -> Graph:
    """Let such a layer read what its QuantizeLinear read, with the attribute `input_steps` or `own_range`. Where the
    precision does not ask for 8 bits, it is one whose weights are on a grid, too, so that nothing else is rounded."""
    by, uses = producers(graph), use_counts(graph)
    shapes, before, on_grid = dict(graph.shapes), dict[str, Node](), dict[str, bool]()
    for node in graph.nodes:
        found = rounded_input(graph, by, node.inputs[0]) if fits_int8(options, graph, node) else None
        if found is None or (found.steps is None and options.backend != "cpu"):
            continue
        if options.precision != "int8":
            if node.inputs[1] not in on_grid:
                on_grid[node.inputs[1]] = has_grid(graph, node)
            if not on_grid[node.inputs[1]]:
                continue
        if found.steps is not None:
            _skip_equal(by, uses, found.name, found.steps)
        name, shape = found.name, graph.shapes[node.inputs[0]]
        if shapes[name] != shape:
            name = f"{node.output}.source"
            before[node.output] = Node(name, "reshape", (found.name,), (name,), {"shape": shape})
            shapes[name] = shape
        attributes = {**node.attributes, **found.attributes}
        by[node.output] = replace(node, inputs=(name, *node.inputs[1:]), attributes=attributes)
    nodes = [each for node in graph.nodes for each in (before.get(node.output), by[node.output]) if each is not None]
    return prune(rebuilt(graph, nodes, shapes=shapes))


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
