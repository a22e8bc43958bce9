"""Finds the dense layers that read rows which their writer may leave in any order, because such layers alone read
them."""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.graph import Graph
from kernels.ir.links import dense_readers

_WIDE = 0.3
"""The share of a reader's columns: a dense layer that has fewer may be of another kind of tile. That one cannot write
so, where its reader's reads so (`pays_direct` and `pays_dealt` in kernels/catalog/desktop/units/cost.py)."""


def free_rows(graph: Graph) -> Graph:
    """These have an attribute `free_rows`: a tile may ask for an order of their rows (`units/fragments.py`)."""
    found: set[str] = set()
    for writer in graph.nodes:
        if writer.op == "dense" or (writer.op == "row_norm" and len(writer.inputs) == 3):  # nothing is added to it
            layers = dense_readers(graph, writer.output) or ()
            widest = max((graph.shapes[each.output][-1] for each in layers), default=0)
            if writer.op == "row_norm" or graph.shapes[writer.output][-1] >= _WIDE * widest:
                found |= {each.output for each in layers}
    nodes = [
        replace(node, attributes={**node.attributes, "free_rows": True}) if node.output in found else node
        for node in graph.nodes
    ]
    return replace(graph, nodes=nodes) if found else graph
