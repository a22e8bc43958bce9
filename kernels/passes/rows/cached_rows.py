"""Rows for a cache (`kernels/ir/cache.py`) out of fewer steps: those that read them normalise them, and products of the
same rows whose results are read where they lie are one product."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kernels.ir.cache import CACHED
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import is_root_mean_square, producers
from kernels.ir.packed import PackedFormat, format_of, joined_columns
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, prune, rebuilt

from .strided_looks import look_at, natural, place_of, reshaped


def cached_rows(graph: Graph) -> Graph:
    """Let `append` and `attend` normalise the rows of each head that they read, and read results of one product."""
    return _one_product(_where_they_lie(_normalised(graph)))


def _looked_at(node: Node) -> int:
    """Return which operand is read where its rows lie; -1: none."""
    return {"append": 1, "attend": 0}.get(node.op, -1)


def _source(name: str, writers: Mapping[str, Node]) -> str:
    """Return the tensor that reshapes give other shapes."""
    while (node := writers.get(name)) is not None and node.op == "reshape":
        name = node.inputs[0]
    return name


def _normalised(graph: Graph) -> Graph:
    """Rows that are divided by the root of their mean square in a step before: in the step that reads them."""
    if not any(node.op in CACHED for node in graph.nodes):
        return graph
    writers, nodes = producers(graph), list[Node]()
    for node in graph.nodes:
        at = _looked_at(node)
        norm = writers.get(_source(node.inputs[at], writers)) if at >= 0 else None
        if norm is None or not is_root_mean_square(graph, norm) or not _is_of_rows(graph, norm, node):
            nodes.append(node)
            continue
        inputs = [*node.inputs, *("",) * (5 + (node.op == "attend") - len(node.inputs)), norm.inputs[1]]
        inputs[at] = norm.inputs[0]
        attributes = {**node.attributes, "normed": True, "epsilon": norm.attributes["epsilon"]}
        nodes.append(replace(node, inputs=tuple(inputs), attributes=attributes))
    return prune(rebuilt(graph, nodes))


def _is_of_rows(graph: Graph, norm: Node, reader: Node) -> bool:
    """Return whether a norm is of the rows that a node reads."""
    depth = graph.shapes[reader.inputs[1 if reader.op == "attend" else 0]][3]
    whole = graph.shapes[norm.output][-1] == depth and all(n % depth == 0 for n in reader.attributes["place"])
    return whole and not reader.attributes["normed"]


def _where_they_lie(graph: Graph) -> Graph:
    """Heads that a step before puts one behind the other: read from what it moves."""
    writers, nodes = producers(graph), list[Node]()
    for node in graph.nodes:
        at = _looked_at(node)
        mover = writers.get(_source(node.inputs[at], writers)) if at >= 0 else None
        if mover is None or mover.op not in ("take", "transpose"):
            nodes.append(node)
            continue
        batch, shared, _, depth = graph.shapes[node.inputs[1 if at == 0 else 0]]
        shape = (batch, node.attributes.get("heads", shared), node.attributes["rows"], depth)
        seen = look_at(graph, node.inputs[at], writers)
        first, _, *steps = node.attributes["place"]
        axes = reshaped(seen.axes, shape) if (batch, first, *steps) == (1, 0, *natural(shape)[1:3]) else None
        place = place_of(replace(seen, axes=axes)) if axes is not None and seen.factor == 1 and not seen.unit else None
        if place is not None:
            inputs = (*node.inputs[:at], seen.base, *node.inputs[at + 1 :])
            node = replace(node, inputs=inputs, attributes={**node.attributes, "place": place})
        nodes.append(node)
    return prune(rebuilt(graph, nodes))


def _one_product(graph: Graph) -> Graph:
    """Dense layers of the same rows, of which only such nodes read the results."""
    writers, readers = producers(graph), dict[str, list[Node]]()
    for node in graph.nodes:
        for index, name in enumerate(node.inputs):
            if node.op != "reshape" and name:
                readers.setdefault(_source(name, writers), []).append(node if index == _looked_at(node) else _OTHER)
    layers: dict[tuple[str, PackedFormat | None], list[Node]] = {}
    for node in graph.nodes:
        if node.op == "dense" and _is_free(graph, node, readers.get(node.output, [])):
            packed = format_of(graph.constants[node.inputs[1]])
            layers.setdefault((_source(node.inputs[0], writers), packed), []).append(node)
    constants: dict[str, Array] = {}
    shapes: dict[str, Shape] = {}
    moved: dict[str, tuple[str, int, int, int]] = {}
    found: dict[str, Node | None] = {}
    for same in layers.values():
        if len(same) < 2:
            continue
        widths = [graph.shapes[node.output][1] for node in same]
        total, whole = sum(widths), fresh(graph, f"{same[0].output}.together")
        for node, width, first in zip(same, widths, np.cumsum([0, *widths]).tolist(), strict=False):
            moved[node.output] = whole, first, width, total
            found[node.output] = None
        weights = [graph.constants[node.inputs[1]] for node in same]
        constants[f"{whole}.weight"] = joined_columns(weights)
        biases = [graph.constants[name] if (name := (*node.inputs, "")[2]) else None for node in same]
        inputs: tuple[str, ...] = (same[0].inputs[0], f"{whole}.weight")
        if any(bias is not None for bias in biases):
            filled = [np.zeros(w, np.float32) if b is None else b for b, w in zip(biases, widths, strict=True)]
            constants[f"{whole}.bias"], inputs = np.concatenate(filled), (*inputs, f"{whole}.bias")
        shapes[whole] = (graph.shapes[same[0].output][0], total)
        found[same[0].output] = replace(same[0], inputs=inputs, outputs=(whole,))
    if not moved:
        return graph
    nodes = [_reading(found.get(node.output, node), writers, moved) for node in graph.nodes]
    return prune(rebuilt(graph, [each for each in nodes if each is not None], constants=constants, shapes=shapes))


_OTHER = Node("", "", (), ("",))


def _is_free(graph: Graph, dense: Node, readers: list[Node]) -> bool:
    """Return whether a layer is a product alone, with rows of whole heads that its readers find by their places."""
    constant = all(name in graph.constants for name in dense.inputs[1:] if name)
    width = graph.shapes[dense.output][1]
    at_once = not dense.attributes and constant and len(dense.inputs) <= 3 and dense.output not in graph.outputs
    return at_once and bool(readers) and all(_is_in_rows(graph, node, width) for node in readers)


def _is_in_rows(graph: Graph, node: Node, width: int) -> bool:
    if node is _OTHER:
        return False
    _, shared, _, depth = graph.shapes[node.inputs[1 if node.op == "attend" else 0]]
    first, batch, head, row = node.attributes["place"]
    inside = first + (node.attributes.get("heads", shared) - 1) * head + depth <= width
    return bool(inside and batch % width == 0 == row % width)


def _reading(
    node: Node | None, writers: Mapping[str, Node], moved: Mapping[str, tuple[str, int, int, int]]
) -> Node | None:
    """The node reading its rows in the result of the one product."""
    at = _looked_at(node) if node is not None else -1
    where = moved.get(_source(node.inputs[at], writers)) if node is not None and at >= 0 else None
    if node is None or where is None:
        return node
    whole, offset, width, total = where
    first, batch, head, row = node.attributes["place"]
    place = (offset + first, batch // width * total, head, row // width * total)
    inputs = (*node.inputs[:at], whole, *node.inputs[at + 1 :])
    return replace(node, inputs=inputs, attributes={**node.attributes, "place": place})
