"""Make one `map` of a chain of operations that compute each element by itself.

An activation, or a sum or product with a constant or with another activation, joins a neighbour that is a map; among
themselves they stay as they are, with kernels of their own, but for a product with what was computed of its other
factor (SiLU: x * sigmoid(x)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from kernels.errors import ModelError
from kernels.ir import expressions
from kernels.ir.activations import ACTIVATIONS, expression_of
from kernels.ir.expressions import LETTERS, Expression, program_of, with_operands
from kernels.ir.graph import Graph, Node
from kernels.ir.links import use_counts
from kernels.ir.programs import WRAPS, held, is_logical, program_type
from kernels.ir.strides import MAX_AXES, strided
from kernels.ir.types import is_whole_valued, to_numpy

from .rewrite import rebuilt


def fuse_maps(graph: Graph) -> Graph:
    """Each map takes what only it reads into its expression, while that fits an expression."""
    counts = use_counts(graph)
    nodes: dict[str, Node] = {}
    for node in graph.nodes:
        merged: Node | None = node
        while merged is not None:
            node, merged = merged, _with_one_more(graph, merged, nodes, counts)
        nodes[node.output] = node
    return rebuilt(graph, list(nodes.values()))


def _with_one_more(graph: Graph, node: Node, nodes: dict[str, Node], counts: Counter[str]) -> Node | None:
    """The node with one of those before it, which is taken out of `nodes`; None where none fits."""
    for name in dict.fromkeys(node.inputs):
        before = nodes.get(name)
        if before is None or counts[name] != node.inputs.count(name):
            continue
        joined = _joined(graph, before, node)
        if joined is not None and not fits(joined.attributes["expression"]):
            counts[name] = 0  # too long it is with all that its only reader takes in later, too
        elif joined is not None:
            counts.subtract((*before.inputs, *node.inputs))
            counts.update(joined.inputs)
            del nodes[name]
            return joined
    return None


def _joined(graph: Graph, first: Node, then: Node) -> Node | None:
    """One map of both; None where they do not fit or are better left alone."""
    inner, outer = expression_of(first), expression_of(then)
    if inner is None or outer is None or ("map" not in (first.op, then.op) and not _is_gate(first, then)):
        return None
    if not _in_one_type(graph, first, then) or not _is_kept(graph, first, inner):
        return None
    if prod(graph.shapes[first.output]) != prod(graph.shapes[then.output]):
        return None  # it would be computed anew for each element that it goes to
    names = dict.fromkeys(name for name in (*then.inputs, *first.inputs) if name != first.output)
    numbers = {name: number for name in names if (number := number_of(graph, name)) is not None}
    inputs = [name for name in names if name not in numbers]
    shapes = [graph.shapes[name] for name in inputs]
    if len(inputs) > len(LETTERS) or np.broadcast_shapes(*shapes) != graph.shapes[then.output]:
        return None
    by: dict[str, Expression] = {**numbers, **dict(zip(inputs, LETTERS, strict=False))}
    by[first.output] = with_operands(inner, _by_letter(first, by))
    expression = with_operands(outer, _by_letter(then, by))
    way = strided(graph.shapes[then.output], shapes)
    if len(way.extents) > MAX_AXES:
        return None
    joined = replace(then, op="map", inputs=tuple(inputs), attributes={"expression": expression})
    return joined if _in_one_type(graph, joined, then) else None


def fits(expression: Expression) -> bool:
    """Return whether an expression is no longer than one may be."""
    try:
        return size_of(expression) <= LONGEST and bool(program_of(expression))
    except ModelError:
        return False


def _in_one_type(graph: Graph, *nodes: Node) -> bool:
    """Return whether nodes compute in one type; conditions of conditions are the same in any."""
    maps = [replace(node, attributes={"expression": expression_of(node)}) for node in nodes]
    return len({program_type(one, graph.types) for one in maps if not is_logical(one, graph.types)}) < 2


def _is_kept(graph: Graph, node: Node, value: Expression) -> bool:
    """Return whether a node's own type holds the numbers that it computes, so that nothing is lost without it."""
    own, one = graph.types[node.output], replace(node, attributes={"expression": value})
    kind = program_type(one, graph.types)
    if own == "bool" or (held(own) == kind and own not in WRAPS):
        return True
    if kind != "f32" or not is_whole_valued(value, [graph.types[name] for name in node.inputs]):
        return False
    limits = np.iinfo(to_numpy(own))
    if limits.bits > 16:  # a number that is no int32 is nothing certain as one
        return True
    match value:
        case ("min", ("max", _, float(low)), float(high)):
            return limits.min <= low and high <= limits.max
    return False


def _by_letter(node: Node, by: Mapping[str, Expression]) -> dict[str, Expression]:
    return {letter: by[name] for letter, name in zip(LETTERS, node.inputs, strict=False)}


def number_of(graph: Graph, name: str) -> float | None:
    """A constant that is a single number."""
    constant = graph.constants.get(name)
    return (
        expressions.number_of(constant)
        if constant is not None and constant.size == 1 and np.isfinite(constant).all()
        else None
    )


def _is_gate(first: Node, then: Node) -> bool:
    """Return whether `then` multiplies what `first` was computed of."""
    return then.op == "mul" and first.op in ACTIVATIONS and first.inputs[0] in then.inputs


LONGEST = 512


def size_of(expression: Expression) -> int:
    """Functions, numbers and operands, each as often as it is written."""
    return 1 + sum(map(size_of, expression[1:])) if isinstance(expression, tuple) else 1
