"""A concat of what an earlier concat joined reads that one's result, as DenseNet's layers and nested U-Nets do.

Each tensor is then part of one concat, and so is the earlier result of the later one: all are written straight into
their place (`lower/aliases.py`), where a tensor in many concats is copied into all but one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.passes.rewrite import rebuilt

Parts = Sequence[str]


def nest_concats(graph: Graph) -> Graph:
    """Replace each run of a concat's inputs that an earlier one has joined along the same axis, the longest first."""
    joined: dict[tuple[int, str], list[tuple[Parts, str]]] = defaultdict(list)
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op == "concat":
            axis, parts = node.attributes["axis"], node.inputs
            node = replace(node, inputs=_nested(parts, axis, joined))
            joined[axis, parts[0]].append((parts, node.output))
            joined[axis, parts[0]].sort(key=lambda known: -len(known[0]))
        nodes.append(node)
    return rebuilt(graph, nodes)


def _nested(parts: Parts, axis: int, joined: dict[tuple[int, str], list[tuple[Parts, str]]]) -> tuple[str, ...]:
    inputs: list[str] = []
    at = 0
    while at < len(parts):
        known = joined.get((axis, parts[at]), ())
        run, name = next(
            ((run, name) for run, name in known if parts[at : at + len(run)] == run),
            (parts[at : at + 1], parts[at]),
        )  # fmt: skip
        inputs.append(name)
        at += len(run)
    return tuple(inputs)
