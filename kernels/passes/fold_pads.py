"""Let a convolution pad its own input, so that no padded copy exists."""

from __future__ import annotations

from dataclasses import replace

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers

from .rewrite import prune, rebuilt


def fold_pads(graph: Graph, *, reflect: bool = True) -> Graph:
    """A conv that reads a padding by zeros, or by reflection where `reflect`, reads what was padded.

    Zeros add to the conv's own pads. A reflection becomes its `pad_mode`, where it has no pads of its own and one
    mirror is enough. Other readers keep the padding.
    """
    writers = producers(graph)
    nodes = [
        _folded(graph, node, writers[node.inputs[0]], reflect) if _reads_a_pad(node, writers) else node
        for node in graph.nodes
    ]
    return prune(rebuilt(graph, nodes))


def _reads_a_pad(node: Node, writers: dict[str, Node]) -> bool:
    return node.op == "conv" and node.inputs[0] in writers and writers[node.inputs[0]].op == "pad"


def _folded(graph: Graph, conv: Node, pad: Node, reflect: bool) -> Node:
    mode, own, more = pad.attributes["mode"], conv.attributes["pads"], pad.attributes["pads"]
    if min(more) < 0 or "pad_mode" in conv.attributes:
        return conv
    inputs = (pad.inputs[0], *conv.inputs[1:])
    if mode == "constant" and pad.attributes["value"] == 0:
        pads = tuple(a + b for a, b in zip(own, more, strict=True))
        return replace(conv, inputs=inputs, attributes={**conv.attributes, "pads": pads})
    top, left, bottom, right = more
    h, w = graph.shapes[pad.inputs[0]][2:]
    if mode == "reflect" and reflect and not any(own) and max(top, bottom) < h and max(left, right) < w:
        return replace(conv, inputs=inputs, attributes={**conv.attributes, "pads": more, "pad_mode": "reflect"})
    return conv
