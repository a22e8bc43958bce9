"""Taps of convolutions that meet nothing but pads: a dilation of 24 over 14 pixels leaves the middle one of three."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernels.ir.graph import Array, Graph, Node

from .rewrite import fresh, rebuilt


def drop_unread_taps(graph: Graph) -> Graph:
    """Windows of constant weights lose the rows and columns at their ends that read zeros around every picture."""
    nodes: list[Node] = []
    constants: dict[str, Array] = {}
    for node in graph.nodes:
        kept = _kept(graph, node) if _has_window(graph, node) else None
        if kept is None:
            nodes.append(node)
            continue
        name = fresh(graph, f"{node.name}:taps")
        (top, bottom), (left, right) = kept
        constants[name] = np.ascontiguousarray(graph.constants[node.inputs[1]][:, :, top:bottom, left:right])
        inputs = (node.inputs[0], name, *node.inputs[2:])
        nodes.append(replace(node, inputs=inputs, attributes={**node.attributes, "pads": _pads(graph, node, kept)}))
    return rebuilt(graph, nodes, constants=constants) if constants else graph


Range = tuple[int, int]


def _has_window(graph: Graph, node: Node) -> bool:
    return node.op == "conv" and node.inputs[1] in graph.constants and "pad_mode" not in node.attributes


def _kept(graph: Graph, node: Node) -> tuple[Range, Range] | None:
    """Rows and columns of the window that stay; None: all."""
    sizes = graph.shapes[node.inputs[1]][2:]
    rows, columns = (_read(graph, node, axis) for axis in (0, 1))
    return None if (rows, columns) == tuple((0, size) for size in sizes) else (rows, columns)


def _read(graph: Graph, node: Node, axis: int) -> Range:
    """Taps from the first to the last that reads an element, as far as no pad becomes negative; one at least."""
    size, a = graph.shapes[node.inputs[1]][2 + axis], node.attributes
    stride, gap, before, after = (a["strides"][axis], a["dilations"][axis], a["pads"][axis], a["pads"][2 + axis])
    extent, results = graph.shapes[node.inputs[0]][2 + axis], graph.shapes[node.output][2 + axis]
    at = np.arange(results) * stride - before
    read = [tap for tap in range(size) if ((at + tap * gap >= 0) & (at + tap * gap < extent)).any()] or [0]
    first = min(read[0], before // gap)
    return first, max(read[-1] + 1, size - after // gap, first + 1)


def _pads(graph: Graph, node: Node, kept: tuple[Range, Range]) -> tuple[int, ...]:
    a, sizes = node.attributes, graph.shapes[node.inputs[1]][2:]
    before = (a["pads"][axis] - kept[axis][0] * a["dilations"][axis] for axis in (0, 1))
    after = (a["pads"][2 + axis] - (sizes[axis] - kept[axis][1]) * a["dilations"][axis] for axis in (0, 1))
    return (*before, *after)
