"""Graph -> segments, each of one backend, in an order in which they can run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.errors import PlanError
from kernels.ir.graph import Graph, Node


@dataclass(frozen=True)
class Segment:
    """A part of a network: its inputs are the network's, or what segments before it leave."""

    graph: Graph
    cpu: bool


def divide(graph: Graph, on_cpu: Mapping[str, bool]) -> list[Segment]:
    """The segments of a graph of whose tensors `on_cpu` says whether the CPU makes them: as much as can run before each
    change of sides, so that there are few changes. Every output of a segment is one that others read, or the graph's
    own; the first has those too that no node makes. Raises PlanError where a segment would read what none leaves."""
    runs = _runs(graph, on_cpu)
    parts = [Segment(_part(graph, nodes, number), cpu) for number, (cpu, nodes) in enumerate(runs)]
    left = {*graph.inputs, *(name for part in parts for name in part.graph.outputs)}
    for part in parts:
        if lost := sorted(set(part.graph.inputs) - left):
            raise PlanError(f"{part.graph.name} reads what no segment leaves: {', '.join(lost)}")
    return parts


def _runs(graph: Graph, on_cpu: Mapping[str, bool]) -> list[tuple[bool, list[Node]]]:
    """The nodes, in an order that respects what each reads, in runs of one side: from either side, the fewer."""
    ways = [_runs_from(graph, on_cpu, first) for first in (False, True)]
    return min(ways, key=len)


def _runs_from(graph: Graph, on_cpu: Mapping[str, bool], first: bool) -> list[tuple[bool, list[Node]]]:
    known = {"", *graph.inputs, *graph.constants}
    left, side = list(graph.nodes), first
    runs: list[tuple[bool, list[Node]]] = []
    while left:
        run: list[Node] = []
        waiting: list[Node] = []
        for node in left:  # in topological order, so that one pass takes all that can run
            if on_cpu[node.output] == side and known.issuperset(node.inputs):
                run.append(node)
                known.update(node.outputs)
            else:
                waiting.append(node)
        if run:
            runs.append((side, run))
        left, side = waiting, not side
    return runs


def _part(graph: Graph, nodes: list[Node], number: int) -> Graph:
    made = {name for node in nodes for name in node.outputs if name}
    stored = [name for name in graph.outputs if graph.producer(name) is None and number == 0]
    reads = dict.fromkeys([*(name for node in nodes for name in node.inputs if name), *stored])
    inside = set(map(id, nodes))  # nodes that one of the model has become share its name
    elsewhere = {name for node in graph.nodes if id(node) not in inside for name in node.inputs}
    constants = {name: graph.constants[name] for name in reads if name in graph.constants}
    inputs = tuple(name for name in reads if name not in made and name not in constants)
    return Graph(
        name=f"{graph.name} {number + 1}",
        inputs=inputs,
        outputs=(
            *(name for node in nodes for name in node.outputs if name in elsewhere or name in graph.outputs),
            *stored,
        ),
        nodes=nodes,
        shapes={name: graph.shapes[name] for name in (*inputs, *constants, *made)},
        constants=constants,
        places=graph.places,
        sums=graph.sums,
        types={name: graph.types[name] for name in (*inputs, *constants, *made)},
    )
