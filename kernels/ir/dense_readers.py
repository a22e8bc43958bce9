"""The dense layers that alone read rows, which whoever writes them may then write in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernels.ir.graph import Graph, Node


def dense_readers(graph: Graph, name: str, readers: Callable[[str], Sequence[Node]]) -> list[Node] | None:
    """Return the nodes that read the tensor's rows, through reshapes that keep the last axis; None where something else
    does.

    `readers`: of a tensor; a pass over all nodes has them in a table.
    """
    if name in graph.outputs:
        return None
    found: list[Node] = []
    for reader in readers(name):
        if reader.op == "reshape" and graph.shapes[reader.output][-1:] == graph.shapes[name][-1:]:
            behind = dense_readers(graph, reader.output, readers)
            if behind is None:
                return None
            found += behind
        elif reader.op == "dense" and reader.inputs.count(name) == 1 and reader.inputs[0] == name:
            found.append(reader)
        else:
            return None
    return found
