"""Layers whose weights no single buffer could hold, in parts by output features, each with weights of its own.

The parts are joined by a concat, which costs nothing where each writes its place in the result (`lower/aliases.py`).
A table is cut as a layer of the same weights is, so that both read the same parts; its gather stays one node, which is
lowered in parts (`lower/gpu/taking.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.weight_parts import Range, cut_evenly, elements_of_packed
from kernels.options import Limits, Options

from .rewrite import rebuilt

DIVISIBLE = ("conv", "dense")
"""Operations whose weights may be divided."""
_OPERANDS = 4
"""Input, weight, bias, residual."""


def largest_weight(options: Options, limits: Limits) -> int:
    """Elements of the largest weight that a buffer of the device holds; 0: any number."""
    return 0 if options.backend == "cpu" else limits.max_buffer_bytes // (2 if options.half else 4)


def oversized(graph: Graph, largest: int) -> dict[str, tuple[Range, ...]]:
    """Node -> ranges of its output features, each with at most `largest` elements of weights (0: any number).

    Of dense layers and of convolutions of one group; what not even four features fit stays whole, and so does a layer
    in 8 bits with a normalisation at its end.
    """
    divisible = (node for node in graph.nodes if largest and _is_divisible(graph, node))
    found = {
        node.name: cut_evenly(graph.shapes[node.output][1], _padded_elements(graph, node), largest)
        for node in divisible
    }
    return {name: cuts for name, cuts in found.items() if len(cuts) > 1}


def split_weights(graph: Graph, cuts: Mapping[str, Sequence[Range]]) -> Graph:
    """Divide each named node as `oversized` says."""
    if not cuts:
        return graph
    nodes: list[Node] = []
    constants: dict[str, Array] = {}
    shapes = dict(graph.shapes)
    for node in graph.nodes:
        own = cuts.get(node.name, ()) if node.op in DIVISIBLE else ()  # others may have a layer's name
        parts = [_part(node, cut) for cut in own]
        for part, cut in zip(parts, own, strict=True):
            constants |= _constants(graph, node, part, cut)
            nodes += [piece for piece in _residual(node, part, cut) if piece.output not in shapes]
            n, _, *rest = shapes[node.output]
            shapes |= dict.fromkeys([part.output, *part.inputs[3:]], (n, cut[1] - cut[0], *rest))
            nodes.append(part)
        joined = Node(node.name, "concat", tuple(part.output for part in parts), node.outputs, {"axis": 1})
        nodes.append(joined if parts else node)
    return rebuilt(graph, nodes, constants=constants, shapes=shapes)


def _part(node: Node, cut: Range) -> Node:
    """One part; its operands but the first are parts as well."""
    x, *others = node.inputs
    operands = (f"{name}.{cut[0]}:{cut[1]}" if name else "" for name in others)
    return replace(node, name=f"{node.name}.{cut[0]}", inputs=(x, *operands), outputs=(f"{node.output}.{cut[0]}",))


def _constants(graph: Graph, node: Node, part: Node, cut: Range) -> dict[str, Array]:
    """Weight and bias of a part."""
    rows = slice(*cut)
    whole = [graph.constants[name] for name in node.inputs[1:3] if name]
    names = [name for name in part.inputs[1:3] if name]
    return {
        name: array[:, rows] if node.op == "dense" and array.ndim == 2 else array[rows]
        for name, array in zip(names, whole, strict=True)
    }


def _residual(node: Node, part: Node, cut: Range) -> Iterator[Node]:
    """Takes a part's features out of what is added."""
    for whole, taken in zip(node.inputs[3:], part.inputs[3:], strict=True):
        yield Node(taken, "slice", (whole,), (taken,), {"axis": 1, "start": cut[0], "stop": cut[1]})


def _is_divisible(graph: Graph, node: Node) -> bool:
    if len(node.inputs) > _OPERANDS:
        return False
    is_whole = node.op == "dense" or (node.op == "conv" and node.attributes["groups"] == 1)
    return is_whole and all(name in graph.constants for name in node.inputs[1:3] if name)


def _padded_elements(graph: Graph, node: Node) -> int:
    """Return the number of weights of one output feature, its inputs padded to whole stacks."""
    if packed := elements_of_packed(graph.constants[node.inputs[1]]):
        return packed
    shape = graph.shapes[node.inputs[1]]
    inputs, *window = shape[:1] if node.op == "dense" else shape[1:]
    elements = -(-inputs // 4) * 4
    for extent in window:
        elements *= extent
    return elements
