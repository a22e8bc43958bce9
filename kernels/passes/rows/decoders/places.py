"""Tables of what a decoder computes of its position alone: a row for each place, for every run at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.ir.activations import expression_of
from kernels.ir.graph import Array, Graph, Node
from kernels.passes.rewrite import fresh, prune
from kernels.reference import evaluate

_MOST, _AT_ONCE = 1 << 27, 1 << 22
"""Numbers that are computed at most, to see that each place has the same in every run; and those of one evaluation."""


def tables_of(graph: Graph, position: str, last: int, names: tuple[str, ...]) -> list[Array] | None:
    """The rows (places, columns) of tensors (1, rows, columns), where those of a place are the same whatever position,
    from 0 to `last`, a run has; None where they are not, or there are too many."""
    _, rows, columns = graph.shapes[names[0]]
    block = max(1, _AT_ONCE // (rows * columns))
    if (last + 1) * rows * columns > _MOST:
        return None
    alone = replace(prune(replace(graph, outputs=names, state={})), inputs=(position,))
    found = [np.zeros((last + rows, columns), np.float32) for _ in names]
    for begin in range(0, last + 1, block):
        positions = np.arange(begin, min(begin + block, last + 1))
        lifted = _lifted(alone, len(positions))
        if lifted is None:
            return None
        given: Array = positions.reshape(-1, 1)  # type: ignore[assignment]  # whole numbers
        values = evaluate(lifted, {position: given}, dtype=np.float32)
        for name, table in zip(names, found, strict=True):
            known = begin + rows - 1 if begin else 0
            for row in range(rows):
                place = positions[0] + row
                of_row = values[name][:, 0, row]
                old = max(0, known - place)
                if not np.array_equal(table[place : place + min(old, len(of_row))], of_row[:old]):
                    return None
                table[place + old : place + len(of_row)] = of_row[old:]
                known = max(known, place + len(of_row))
    return found


def _lifted(graph: Graph, count: int) -> Graph | None:
    """The graph of so many positions at once, along a first axis; None where a node has no such form."""
    shapes = {name: shape if name in graph.constants else (count, *shape) for name, shape in graph.shapes.items()}
    nodes = list[Node]()
    for node in graph.nodes:
        expression, a = expression_of(node), node.attributes
        constant = [name in graph.constants for name in node.inputs]
        if expression is not None:
            inputs, rank = list[str](), len(shapes[node.output])
            for name in node.inputs:
                if name not in graph.constants and len(shapes[name]) < rank:
                    apart = fresh(graph, f"{name}.{rank}.{len(nodes)}")
                    shapes[apart] = (count, *(1,) * (rank - len(shapes[name])), *shapes[name][1:])
                    nodes.append(Node(node.name, "reshape", (name,), (apart,), {"shape": shapes[apart]}))
                    name = apart
                inputs.append(name)
            nodes.append(replace(node, op="map", inputs=tuple(inputs), attributes={"expression": expression}))
        elif node.op == "reshape":
            nodes.append(replace(node, attributes={"shape": shapes[node.output]}))
        elif node.op == "transpose":
            nodes.append(replace(node, attributes={"perm": (0, *(axis + 1 for axis in a["perm"]))}))
        elif node.op in ("slice", "concat") and not any(constant):
            nodes.append(replace(node, attributes={**a, "axis": a["axis"] + 1}))
        elif node.op in ("matmul", "dense") and len(node.inputs) == 2 and sum(constant) == 1:
            nodes.append(replace(node, op="matmul"))
        elif node.op == "gather" and constant == [True, False] and a["axis"] == 0:
            nodes.append(node)
        else:
            return None
    return replace(graph, nodes=nodes, shapes=shapes)
