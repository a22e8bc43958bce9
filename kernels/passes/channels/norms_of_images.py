"""A normalisation of rows that a transposition makes of an image reads the image itself."""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.dims import TO_ROWS, is_turn
from kernels.ir.graph import Graph
from kernels.ir.links import producers, use_counts
from kernels.passes.rewrite import rebuilt


def norms_of_images(graph: Graph) -> Graph:
    """transpose, row_norm -> row_norm with attribute `of_image`: x is (N, C, h, w), the result (N, h, w, C)."""
    counts, writers = use_counts(graph), producers(graph)
    found, gone = {}, set()
    for node in graph.nodes:
        turn = writers.get(node.inputs[0]) if node.op == "row_norm" else None
        if turn is None or not is_turn(turn, TO_ROWS):
            continue
        if counts[turn.output] == 1 and len(node.inputs) == 3 and node.attributes.keys() == {"epsilon"}:
            attributes = {**node.attributes, "of_image": True}
            found[node.output] = replace(node, inputs=(turn.inputs[0], *node.inputs[1:]), attributes=attributes)
            gone.add(turn.output)
    nodes = [found.get(node.output, node) for node in graph.nodes if node.output not in gone]
    return rebuilt(graph, nodes) if found else graph
