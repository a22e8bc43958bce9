"""Local response normalisation in one node, from a mean of squares over neighbouring channels in any steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from kernels.ir.activations import expression_of
from kernels.ir.expressions import with_operands
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.ir.shapes import Shape
from kernels.ir.taking import NOTHING, split_table
from kernels.passes.rewrite import prune, rebuilt
from kernels.passes.rows.roots import power_of, statistic_of

from .sums_of_squares import squared_of


def responses(graph: Graph) -> Graph:
    """x / (bias + alpha * mean of squares over an odd window of channels) ** beta -> lrn."""
    writers = producers(graph)
    return prune(rebuilt(graph, [_response(graph, node, writers) or node for node in graph.nodes]))


def _response(graph: Graph, node: Node, writers: Mapping[str, Node]) -> Node | None:
    if expression_of(node) != ("div", "a", "b") or len(graph.shapes[node.output]) != 4:
        return None
    x, divisor = node.inputs
    expression, pool = statistic_of(graph, divisor, writers, of=("average_pool",)) or ("", None)
    power = power_of(with_operands(expression, {"a": "a"})) if pool is not None else None
    if pool is None or power is None or power.exponent <= 0 or power.floor or power.epsilon <= 0:
        return None
    size, pads = _window(graph, pool)
    squares: str | None = pool.inputs[0]
    if not pads and squares is not None:
        squares = _padded(graph, _behind(squares, writers), size, graph.shapes[x]) if size % 2 else None
    elif 2 * pads + 1 != size:
        return None
    if squares is None or squared_of(_behind(squares, writers)) != x:
        return None
    attributes = {"size": size, "alpha": power.scale, "beta": power.exponent, "bias": power.epsilon}
    return replace(node, op="lrn", inputs=(x,), attributes=attributes)


def _behind(name: str, writers: Mapping[str, Node]) -> Node | None:
    """Return the node that computes what reshapes make this tensor of."""
    while (node := writers.get(name)) is not None and node.op == "reshape":
        name = node.inputs[0]
    return node


def _window(graph: Graph, pool: Node) -> tuple[int, int]:
    """Return the channels of windows that slide down channels alone, one further each time, and the zeros before and
    behind them; no channels if they do not."""
    a, shape = pool.attributes, graph.shapes[pool.inputs[0]]
    (size, across), (top, left, bottom, right) = a["kernel"], a["pads"]
    plain = across == 1 and tuple(a["strides"]) == (1, 1) and shape[1] == 1 and not (left or right) and top == bottom
    return (int(size), int(top)) if plain and (a["count_include_pad"] or not top) else (0, 0)


def _padded(graph: Graph, node: Node | None, size: int, shape: Shape) -> str | None:
    """Return the tensor to which a node adds half a window of zero channels before and behind; None for others."""
    if node is None or node.op != "take" or node.attributes["value"]:
        return None
    (n, c, h, w), half = shape, size // 2
    extents = node.attributes["shape"]
    tables = split_table(graph.constants[node.inputs[1]], extents)
    parts = [
        (part, stride)
        for part, stride, extent in zip(tables, node.attributes["strides"], extents, strict=True)
        if extent > 1
    ]
    channels = np.concatenate([np.full(half, NOTHING), np.arange(c), np.full(half, NOTHING)])
    wanted = [(np.arange(n), c * h * w), (channels, h * w), (np.arange(h), w), (np.arange(w), 1)]
    wanted = [(part, stride) for part, stride in wanted if len(part) > 1]
    alike = len(parts) == len(wanted) and all(
        one[1] == two[1] and np.array_equal(one[0], two[0]) for one, two in zip(parts, wanted, strict=True)
    )
    whole = prod(graph.shapes[node.inputs[0]]) == prod(shape)
    return node.inputs[0] if alike and whole else None
