"""Which dense layers read rows that a normalisation writes for such layers alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from kernels.ir.dense_readers import dense_readers
from kernels.ir.graph import Graph, Node


def normed_rows(graph: Graph) -> Graph:
    """These have an attribute `normed`: a tile may ask for an order of their rows (`units/fragments.py`)."""
    readers: dict[str, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for name in node.inputs:
            readers[name].append(node)
    found: set[str] = set()
    for norm in graph.nodes:
        if norm.op == "row_norm" and len(norm.inputs) == 3:
            layers = dense_readers(graph, norm.output, lambda name: readers[name])
            found |= {each.output for each in layers or ()}
    nodes = [replace(n, attributes={**n.attributes, "normed": True}) if n.output in found else n for n in graph.nodes]
    return replace(graph, nodes=nodes) if found else graph
