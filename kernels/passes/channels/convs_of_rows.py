"""A convolution with filters of each channel's own, between rows of channels, reads and writes the rows themselves."""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.dims import TO_IMAGE, TO_ROWS, is_turn
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.passes.rewrite import prune, rebuilt


def convs_of_rows(graph: Graph) -> Graph:
    """transpose, conv, transpose -> row_conv of (N, h, w, C), where whole vectors of four channels lie side by side."""
    counts, writers = use_counts(graph), producers(graph)
    found: dict[str, Node] = {}
    for last in graph.nodes:
        conv = writers.get(last.inputs[0]) if is_turn(last, TO_ROWS) else None
        if conv is None or counts[conv.output] > 1 or not _is_of_each_channel(graph, conv):
            continue
        turns = [writers.get(name) for name in (conv.inputs[0], *conv.inputs[3:])]
        rows = [turn.inputs[0] for turn in turns if turn is not None and is_turn(turn, TO_IMAGE)]
        if len(rows) == len(turns):
            inputs = (rows[0], *conv.inputs[1:3], *rows[1:])
            found[last.output] = replace(conv, op="row_conv", inputs=inputs, outputs=last.outputs)
    return prune(rebuilt(graph, [found.get(node.output, node) for node in graph.nodes])) if found else graph


def _is_of_each_channel(graph: Graph, node: Node) -> bool:
    if node.op != "conv":
        return False
    channels = graph.shapes[node.inputs[0]][1]
    return channels % 4 == 0 and channels == node.attributes["groups"] == graph.shapes[node.output][1]
