"""Products of which only parts of the columns are read, as a gate and what it lets through that lie side by side."""

from __future__ import annotations

from itertools import pairwise

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, prune, rebuilt


def divided_products(graph: Graph) -> Graph:
    """Let each part of a dense layer's columns be a layer of its own, where nobody reads two of them at once."""
    found: dict[str, list[Node]] = {}
    constants: dict[str, Array] = {}
    shapes: dict[str, Shape] = {}
    for node in graph.nodes:
        parts = _parts(graph, node.output) if node.op == "dense" and _is_product(graph, node) else None
        ends = sorted((part.attributes["start"], part.attributes["stop"]) for part in parts or [])
        if len(ends) < 2 or any(before[1] > after[0] for before, after in pairwise(ends)):
            continue
        for part in parts or []:
            columns = slice(part.attributes["start"], part.attributes["stop"])
            product = fresh(graph, f"{part.output}.product")
            named = {name: fresh(graph, f"{part.output}.{number}") for number, name in enumerate(node.inputs[1:])}
            constants |= {new: graph.constants[name][..., columns] for name, new in named.items()}
            shapes[product] = (graph.shapes[node.output][0], columns.stop - columns.start)
            found[part.output] = [
                Node(part.name, "dense", (node.inputs[0], *named.values()), (product,), node.attributes),
                Node(part.name, "reshape", (product,), part.outputs, {"shape": graph.shapes[part.output]}),
            ]
    nodes = [each for node in graph.nodes for each in found.get(node.output, [node])]
    return prune(rebuilt(graph, nodes, constants=constants, shapes=shapes)) if found else graph


def _is_product(graph: Graph, node: Node) -> bool:
    return not node.attributes and len(node.inputs) < 4 and all(name in graph.constants for name in node.inputs[1:])


def _parts(graph: Graph, name: str) -> list[Node] | None:
    """Return the slices of the last axis that read a tensor; None where something else reads it."""
    found, readers = list[Node](), graph.consumers(name)
    for reader in readers:
        last = len(graph.shapes[name]) - 1
        if reader.op == "reshape" and graph.shapes[reader.output][-1:] == graph.shapes[name][-1:]:
            behind = _parts(graph, reader.output)
            if behind is None:
                return None
            found += behind
        elif reader.op == "slice" and reader.attributes["axis"] == last:
            found.append(reader)
        else:
            return None
    return None if name in graph.outputs else found
