"""Name the functions that steps of a model compute of one tensor, in whatever steps an exporter wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isclose, isinf

from kernels.ir import compositions
from kernels.ir.activations import ACTIVATIONS, expression_of
from kernels.ir.expressions import Expression, operands_of, with_operands
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.ir.programs import in_floats
from kernels.lower.activation import AT_END
from kernels.passes.fuse_maps import fits, number_of, size_of
from kernels.passes.rewrite import prune, rebuilt

from .canonical import canonical, clipped, exact, leaking

_LONGEST, _MOST_ROOTS = 64, 4


def known_functions(graph: Graph) -> Graph:
    """Steps that compute an activation of one tensor -> that activation; a function of `AT_END` -> its own map. Any
    other function that reads its operand several times -> one map."""
    made: dict[str, dict[str, Expression]] = {}
    writers, read = producers(graph), graph.readers
    nodes = []
    for node in graph.nodes:
        ways = _ways(graph, node, made)
        nearest = list(ways.items())
        made[node.output] = dict((*nearest[:_MOST_ROOTS], *nearest[-1:]))  # all of a function's steps meet in the last
        found = [(root, known) for root, way in ways.items() if (known := _known(way)) is not None]
        if found and node.op not in ACTIVATIONS:
            root, (op, attributes) = found[-1]
            attributes = {"shape": graph.shapes[root]} if op == "reshape" else attributes
            node = replace(node, op=op, inputs=(root,), attributes=attributes)
        for root, way in [] if found else reversed(ways.items()):
            if [*operands_of(way)].count("a") > 1 and _is_apart(graph, node, root, writers, read) and fits(way):
                node = replace(node, op="map", inputs=(root,), attributes={"expression": way})
                break
        nodes.append(node)
    return prune(rebuilt(graph, nodes))


def _ways(graph: Graph, node: Node, made: dict[str, dict[str, Expression]]) -> dict[str, Expression]:
    """Return what a node computes as expressions of single tensors before it, the nearest first."""
    own, shape = expression_of(node), graph.shapes[node.output]
    if own is None or not in_floats(node, graph.types):
        return {}
    numbers = {name: number for name in node.inputs if (number := number_of(graph, name)) is not None}
    read = [name for name in dict.fromkeys(node.inputs) if name not in numbers]
    if not read or any(graph.shapes[name] != shape or name in graph.constants for name in read):
        return {}
    behind: list[dict[str, Expression]] = [{name: "a", **made.get(name, {})} for name in read]
    found = {}
    for root in behind[0]:
        if all(root in ways for ways in behind):
            by = {**numbers, **{name: ways[root] for name, ways in zip(read, behind, strict=True)}}
            way = with_operands(own, {letter: by[name] for letter, name in zip("abcd", node.inputs, strict=False)})
            if size_of(way) <= _LONGEST:
                found[root] = way
    return found


def _is_apart(
    graph: Graph, last: Node, root: str, writers: Mapping[str, Node], read: Mapping[str, Sequence[Node]]
) -> bool:
    """Return whether nobody else reads what is computed between a tensor and a node."""
    inside, open_ = {last.output}, [last]
    while open_:
        for name in open_.pop().inputs:
            if name != root and name in writers and name not in inside:
                inside.add(name)
                open_.append(writers[name])
    return all(
        {each.output for each in read[name]} <= inside and name not in graph.outputs for name in inside - {last.output}
    )


@lru_cache(maxsize=1024)
def _known(way: Expression) -> tuple[str, dict[str, object]] | None:
    """Return the operation and attributes of a known function; a reshape, whose shape is open, where it is none."""
    form = canonical(way)
    if form == canonical("a"):
        return "reshape", {}
    for _, meant in AT_END.values():
        if form == canonical(meant):
            return "map", {"expression": meant}
    if form in (canonical(compositions.sigmoid("a")), canonical(compositions.hard_swish("a"))):
        return "sigmoid" if form == canonical(compositions.sigmoid("a")) else "hard_swish", {}
    slope = leaking(exact(way))
    if slope is not None and 0 < slope < 1:
        return "leaky_relu", {"slope": slope}
    match clipped(exact(way)):
        case (1.0, 0.0, 0.0, high) if isinf(high):
            return "relu", {}
        case (1.0, 0.0, low, high) if not isinf(low) and not isinf(high):  # infinity passes
            return "clip", {"min": low, "max": high}
        case (alpha, beta, low, high) if _near(alpha * low + beta, 0.0) and _near(alpha * high + beta, 1.0):
            return "hard_sigmoid", {"alpha": alpha, "beta": beta}
    return None


def _near(number: float, other: float) -> bool:
    return isclose(number, other, abs_tol=1e-5)
