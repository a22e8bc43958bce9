"""Rows that an exporter transposes before and behind an attention, in the order in which they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.passes.rewrite import rebuilt


def rows_in_order(graph: Graph) -> Graph:
    """Remove transpositions of rows before the layer that makes q, k and v, and back behind the one that follows.

    Both layers compute each row by itself. An exporter puts the places of a sequence before its batch.
    """
    for node in [each for each in graph.nodes if each.op == "attention"]:
        graph = _in_order_before(graph, node)
    for name in [each.output for each in graph.nodes if each.op == "attention"]:
        graph = _in_order_behind(graph, name)
    return graph


def _in_order_before(graph: Graph, node: Node) -> Graph:
    writers = producers(graph)
    chain = _row_by_row(graph, node.inputs[0], writers)
    if len(set(node.inputs[:3])) != 1 or chain is None or graph.consumers(node.inputs[0]) != [node]:
        return graph
    turn = chain
    rows, batch = graph.shapes[turn.output][:2]
    columns = graph.shapes[node.inputs[0]][-1]
    places = {}
    for word in "qkv":
        first, *strides = node.attributes[word]
        if strides[0] != columns or strides[2] != batch * columns or first >= columns or strides[1] >= columns:
            return graph
        places[word] = (first, rows * columns, strides[1], columns)
    if node.attributes["sizes"][0] != batch or node.attributes["sizes"][2] != rows:
        return graph
    flat = Node(turn.name, "reshape", turn.inputs, turn.outputs, {"shape": graph.shapes[turn.output]})
    replaced = {turn.output: flat, node.output: replace(node, attributes={**node.attributes, **places})}
    return rebuilt(graph, [replaced.get(each.output, each) for each in graph.nodes])


def _row_by_row(graph: Graph, name: str, writers: Mapping[str, Node]) -> Node | None:
    """The transposition of the first two of three axes from which a tensor is computed row by row."""
    is_first = True
    while (node := writers.get(name)) is not None:
        last = graph.shapes[node.inputs[0]][-1]
        by_row = node.op == "dense" or (node.op in ("add", "reshape") and graph.shapes[node.output][-1] == last)
        if node.op == "transpose" and node.attributes["perm"] == (1, 0, 2):
            return node if len(graph.consumers(node.output)) == 1 else None
        if not by_row or (not is_first and len(graph.consumers(node.output)) != 1):
            return None
        if node.op == "add" and not _is_by_column(graph, node):
            return None
        is_first, name = False, node.inputs[0]
    return None


def _is_by_column(graph: Graph, node: Node) -> bool:
    constant = graph.constants.get(node.inputs[1])
    return constant is not None and constant.size in (1, constant.shape[-1] if constant.ndim else 1)


def _in_order_behind(graph: Graph, name: str) -> Graph:
    node = next(each for each in graph.nodes if each.output == name)
    batch, heads, rows, _, _, columns = node.attributes["sizes"]
    if node.attributes["out"] != (0, heads * columns, columns, batch * heads * columns):
        return graph
    readers, tensor, turn = graph.consumers(name), name, None
    while len(readers) == 1 and tensor not in graph.outputs:
        reader = readers[0]
        if reader.op == "transpose" and reader.attributes["perm"] == (1, 0, 2):
            turn = reader if graph.shapes[tensor][:2] == (rows, batch) else None
            break
        shape, then = graph.shapes[tensor], graph.shapes[reader.output]
        flat = reader.op == "reshape" and prod(then[:-1]) == rows * batch
        dense = reader.op == "dense" and shape[0] == rows * batch
        if not flat and not dense and (reader.op != "add" or not _is_by_column(graph, reader)):
            break
        tensor, readers = reader.output, graph.consumers(reader.output)
    if turn is None:
        return graph
    out = (0, rows * heads * columns, columns, heads * columns)
    flat_node = Node(turn.name, "reshape", turn.inputs, turn.outputs, {"shape": graph.shapes[turn.output]})
    replaced = {name: replace(node, attributes={**node.attributes, "out": out}), turn.output: flat_node}
    return rebuilt(graph, [replaced.get(each.output, each) for each in graph.nodes])
