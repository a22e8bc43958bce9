"""Move a transposition of a convolution's image in front of what is done to its parts, so that the two meet.

An optimiser moves it behind slices, concats with constants and what is computed of each element with constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, rebuilt

from .late_turns import turned_constant

_OF_EACH_ELEMENT = frozenset({"add", "mul", "map", *ACTIVATIONS})
_OF_PARTS = frozenset({"slice", "concat"})


def early_turns(graph: Graph) -> Graph:
    """op(x), transpose -> transpose(x), op, where x is a convolution's result, perhaps behind a reshape."""
    work = replace(graph, constants=dict(graph.constants), shapes=dict(graph.shapes))
    counts, writers = use_counts(graph), producers(graph)
    found, gone = dict[str, list[Node]](), set[str]()
    for turn in [node for node in graph.nodes if node.op == "transpose"]:
        chain = _chain(work, turn, counts, writers)
        if chain:
            found[turn.output] = nodes = _turned(work, turn, chain)
            gone.update(node.output for node in chain)
            writers |= {node.output: node for node in nodes}
            counts.update(node.output for node in nodes[:-1])
    nodes = [each for node in graph.nodes for each in found.get(node.output, [node]) if each.output not in gone]
    return rebuilt(work, nodes) if found else graph


def _chain(graph: Graph, turn: Node, counts: Mapping[str, int], writers: Mapping[str, Node]) -> list[Node]:
    """The nodes between a convolution's result and a transposition, which may work on what is transposed."""
    rank, name, chain = len(turn.attributes["perm"]), turn.inputs[0], list[Node]()
    while counts[name] == 1 and (node := writers.get(name)) is not None and _bears(graph, node, rank):
        (name,) = (each for each in node.inputs if each not in graph.constants)
        chain.append(node)
    first = writers.get(name)
    first = writers.get(first.inputs[0]) if first is not None and first.op == "reshape" else first
    return chain[::-1] if first is not None and first.op == "conv" else []


def _turned(graph: Graph, turn: Node, chain: list[Node]) -> list[Node]:
    """A transposition, and the nodes of a chain behind it; the graph gets their shapes and constants."""
    perm = turn.attributes["perm"]
    (name,) = (each for each in chain[0].inputs if each not in graph.constants)

    def named(base: str, shape: Shape) -> str:
        new = fresh(graph, base)
        graph.shapes[new] = tuple(shape[axis] for axis in perm)
        return new

    known = {name: named(f"{name}.turned", graph.shapes[name])}
    nodes = [replace(turn, inputs=(name,), outputs=(known[name],))]
    for node in chain:
        for each in node.inputs:
            if each in graph.constants:
                array = turned_constant(graph.constants[each], perm)
                known[each] = fresh(graph, f"{node.output}.turned_constant")
                graph.constants[known[each]], graph.shapes[known[each]] = array, array.shape
        is_last = node is chain[-1]
        known[node.output] = turn.output if is_last else named(f"{node.output}.turned", graph.shapes[node.output])
        axes = {"axis": perm.index(node.attributes["axis"])} if "axis" in node.attributes else {}
        inputs = tuple(known[each] for each in node.inputs)
        attributes = {**node.attributes, **axes}
        nodes.append(replace(node, inputs=inputs, outputs=(known[node.output],), attributes=attributes))
    return nodes


def _bears(graph: Graph, node: Node, rank: int) -> bool:
    """Return whether a node may work on a transposed tensor: all else that it reads are constants."""
    read = [name for name in node.inputs if name not in graph.constants]
    if len(read) != 1 or node.op not in _OF_EACH_ELEMENT | _OF_PARTS:
        return False
    return len(graph.shapes[read[0]]) == rank == len(graph.shapes[node.output]) and (
        node.op in _OF_PARTS or graph.shapes[read[0]] == graph.shapes[node.output]
    )
