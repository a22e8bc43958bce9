"""Whole numbers of 64 bits become such of 32 where bounds show that these hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernels.errors import UnsupportedNode
from kernels.ir.activations import expression_of
from kernels.ir.bounds import Reading
from kernels.ir.graph import Graph, Node
from kernels.ir.intervals import Bounds, ends_of
from kernels.ir.links import use_counts
from kernels.ir.programs import held, program_type
from kernels.ir.types import ElementType, to_numpy

_ENDS = ends_of("i32")


def narrow(graph: Graph, *, wide: bool) -> Graph:
    """Return the graph with other types, and its constants in these.

    The ports keep theirs where the device is `wide`, so has numbers of 64 bits. Else inputs are of 32 bits, which they
    are held against when they are given, and so is all else. Raises UnsupportedNode where that is not certain.
    """
    types = dict(graph.types)
    long = {name for name, kind in types.items() if held(kind) == "i64"}
    if not long:
        return graph
    given: dict[str, Bounds] = {}
    for name in () if wide else long.intersection(graph.inputs):
        given[name] = max(_ENDS[0], ends_of(types[name])[0]), _ENDS[1]
    reading = Reading(graph.nodes, graph.constants, graph.shapes, given, graph.types)
    kept = {*graph.inputs, *graph.outputs} if wide else set()
    for name in long.intersection([*graph.constants, *graph.inputs]) - kept:
        if _fits(reading.bounds(name)):
            types[name] = "i32"
    for node in graph.nodes:
        for name in long.intersection(node.outputs) - kept:
            if _fits(reading.bounds(name)) and _parts_fit(node, types, reading):
                types[name] = "i32"
    counts = use_counts(graph)
    for node in reversed(graph.nodes):  # of a port that is only reshaped nothing is won by another type before it
        source = node.inputs[0] if node.op == "reshape" and held(types[node.output]) == "i64" else ""
        if source in long and source not in graph.constants and counts[source] == 1:
            types[source] = graph.types[source]
    if not wide:
        _check(graph, types)
    changed = {name: to_numpy(types[name]) for name in graph.constants if types[name] != graph.types[name]}
    constants = graph.constants | {name: graph.constants[name].astype(kind) for name, kind in changed.items()}
    return replace(graph, constants=constants, types=types)


def _fits(bounds: Bounds) -> bool:
    return _ENDS[0] <= bounds[0] and bounds[1] <= _ENDS[1]


def _parts_fit(node: Node, types: dict[str, ElementType], reading: Reading) -> bool:
    """Return whether 32 bits hold all that a map computes, where they hold all that it reads."""
    expression = expression_of(node)
    if expression is None or any(held(types[name]) == "i64" for name in node.inputs):
        return True
    one = replace(node, op="map", attributes={"expression": expression})
    return program_type(one, types) == "f32" or _fits(reading.parts.get(node.output, _ENDS))


def _check(graph: Graph, types: dict[str, ElementType]) -> None:
    """Raise UnsupportedNode where something is left that 32 bits may not hold."""
    for where, name in _made(graph):
        if held(types[name]) == "i64":
            raise UnsupportedNode(
                f"{where}: its whole numbers ({graph.types[name]}) may pass 2^31, and this device's kernels have no "
                "64 bits; clip them or cast them to INT32 in the model, or use cpu or opencl"
            )


def _made(graph: Graph) -> Iterator[tuple[str, str]]:
    yield from ((name, name) for name in graph.constants)
    yield from ((node.name, name) for node in graph.nodes for name in node.outputs if name)
