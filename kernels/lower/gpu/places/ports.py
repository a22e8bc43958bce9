"""Outputs that layers write as the host reads them, without a step that changes their layout or data type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kernels.ir.dims import Dims
from kernels.ir.graph import Graph


def only_outputs(graph: Graph, aliases: Mapping[str, tuple[str, int]]) -> frozenset[str]:
    """Outputs that no node reads, and what only a reshape to such a one reads: who writes it may do so for the host.

    `aliases`: parts that are written into a concat's result, and so as the network has them.
    """
    reads = Counter(name for node in graph.nodes for name in node.inputs)
    shared = {*aliases, *(whole for whole, _ in aliases.values())}
    ports = {name for name in graph.outputs if not reads[name]} - shared
    for node in reversed(graph.nodes):
        source = node.inputs[0] if node.op == "reshape" and node.output in ports else ""
        if source and reads[source] == 1 and source not in shared and source not in graph.outputs:
            ports.add(source)
    return frozenset(ports)


def in_rows(dims: Dims) -> bool:
    """Return whether stacks of four channels are a row-major array but for lanes behind its end."""
    return dims.hw == 1 and (dims.n == 1 or dims.c % 4 == 0)
