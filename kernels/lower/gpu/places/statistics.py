"""Tensors that a plan of halves keeps in single: sums and means, and what maps compute of them alone.

They are few numbers, and the square of a half, or one over it, is beyond the range of halves.
"""

from __future__ import annotations

from kernels.ir.graph import Graph


def statistics(graph: Graph) -> frozenset[str]:
    """Tensors that only maps and reductions read, through reshapes too: these take them as they are."""
    found: set[str] = set()
    for node in graph.nodes:
        computed = [name for name in node.inputs if name not in graph.constants]
        if node.op == "reduce" or (node.op in ("map", "reshape") and computed and found.issuperset(computed)):
            found.add(node.output)
    behind_of = graph.readers
    for node in reversed(graph.nodes):
        behind = behind_of.get(node.output, []) if node.output in found else []
        if not all(each.op in ("map", "reduce") or (each.op == "reshape" and each.output in found) for each in behind):
            found.discard(node.output)
    return frozenset(found)
