"""Move a transposition of a convolution's image in front of what is done to its parts, so that the two meet.

An optimiser moves it behind slices, concats with constants and what is computed of each element with constants.
"""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, rebuilt

from .late_turns import turned_constant

_OF_EACH_ELEMENT = frozenset({"add", "mul", "map", *ACTIVATIONS})
_OF_PARTS = frozenset({"slice", "concat"})


def early_turns(graph: Graph) -> Graph:
    """op(x), transpose -> transpose(x), op, where x is a convolution's result, perhaps behind a reshape."""
    for turn in [node for node in graph.nodes if node.op == "transpose"]:
        graph = _moved(graph, turn)
    return graph


def _moved(graph: Graph, turn: Node) -> Graph:
    counts, writers = use_counts(graph), producers(graph)
    rank, name, chain = len(turn.attributes["perm"]), turn.inputs[0], list[Node]()
    while counts[name] == 1 and (node := writers.get(name)) is not None and _bears(graph, node, rank):
        (name,) = (each for each in node.inputs if each not in graph.constants)
        chain.insert(0, node)
    first = writers.get(name)
    first = writers.get(first.inputs[0]) if first is not None and first.op == "reshape" else first
    if not chain or first is None or first.op != "conv":
        return graph
    perm, shapes, constants = turn.attributes["perm"], dict[str, Shape](), dict[str, Array]()
    known = {name: fresh(graph, f"{name}.turned")}
    shapes[known[name]] = tuple(graph.shapes[name][axis] for axis in perm)
    nodes = [replace(turn, inputs=(name,), outputs=(known[name],))]
    for node in chain:
        for each in node.inputs:
            if each in graph.constants:
                known[each] = fresh(graph, f"{node.output}.turned_constant")
                constants[known[each]] = turned_constant(graph.constants[each], perm)
        is_last = node is chain[-1]
        known[node.output] = turn.output if is_last else fresh(graph, f"{node.output}.turned")
        shapes[known[node.output]] = tuple(graph.shapes[node.output][axis] for axis in perm)
        attributes = dict(node.attributes)
        if "axis" in attributes:
            attributes["axis"] = perm.index(attributes["axis"])
        inputs = tuple(known[each] for each in node.inputs)
        nodes.append(replace(node, inputs=inputs, outputs=(known[node.output],), attributes=attributes))
    gone = {node.output for node in chain}
    kept = [each for node in graph.nodes if node.output not in gone for each in (nodes if node is turn else [node])]
    return rebuilt(graph, kept, shapes=shapes, constants=constants)


def _bears(graph: Graph, node: Node, rank: int) -> bool:
    """Return whether a node may work on a transposed tensor: all else that it reads are constants."""
    read = [name for name in node.inputs if name not in graph.constants]
    if len(read) != 1 or node.op not in _OF_EACH_ELEMENT | _OF_PARTS:
        return False
    return len(graph.shapes[read[0]]) == rank == len(graph.shapes[node.output]) and (
        node.op in _OF_PARTS or graph.shapes[read[0]] == graph.shapes[node.output]
    )
