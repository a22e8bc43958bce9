"""Graphs inside of nodes: If, Loop and Scan have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx


def names_read(nodes: Sequence[onnx.NodeProto]) -> Iterator[str]:
    """Every name that nodes read, also those that only graphs inside of them read."""
    for node in nodes:
        yield from node.input
        for graph in graphs_of(node):
            yield from names_read(graph.node)
            yield from (port.name for port in graph.output)


def every_node(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes, and those of graphs inside of them."""
    for node in nodes:
        yield node
        for graph in graphs_of(node):
            yield from every_node(graph.node)


def inner_graphs(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    """Graphs inside of nodes, at any depth."""
    for node in every_node(nodes):
        yield from graphs_of(node)


def graphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    return [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]
