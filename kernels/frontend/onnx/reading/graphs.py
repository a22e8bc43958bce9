"""Graphs inside of nodes: If, Loop and Scan have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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


def renamed(node: onnx.NodeProto, names: Mapping[str, str], prefix: str) -> onnx.NodeProto:
    """Return a copy of a node with other names of tensors, also in the graphs inside of it that have none so named."""
    new = onnx.NodeProto()
    new.CopyFrom(node)
    new.name = f"{prefix}/{node.name}" if node.name else ""
    new.input[:] = [names.get(name, name) for name in node.input]
    new.output[:] = [names.get(name, name) for name in node.output]
    for graph in graphs_of(new):
        own = {port.name for port in graph.input} | {tensor.name for tensor in graph.initializer}
        own |= {name for inner in graph.node for name in inner.output}
        outer = {name: to for name, to in names.items() if name not in own}
        nodes = [renamed(inner, outer, prefix) for inner in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)
        for port in graph.output:
            port.name = outer.get(port.name, port.name)
    return new
