"""One copy of a copy of single elements: a slice by steps along one axis, then along another."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers
from kernels.ir.shapes import Shape
from kernels.ir.taking import axes_of, joined, split_table
from kernels.passes.rewrite import fresh, prune, rebuilt

from .transposes import at_once

_Places = npt.NDArray[np.int64]


def compose_takes(graph: Graph) -> Graph:
    """take, [reshape,] take -> take of the first one's source, where each axis of it is an axis of the second alone."""
    writers, constants, nodes = producers(graph), dict[str, Array](), list[Node]()
    shapes: dict[str, Shape] = {}
    for node in graph.nodes:
        first = writers.get(node.inputs[0]) if node.op == "take" else None
        while first is not None and first.op == "reshape" and graph.types[first.inputs[0]] == graph.types[first.output]:
            first = writers.get(first.inputs[0])
        tables = _composed(graph, first, node, constants) if first is not None and first.op == "take" else None
        if first is not None and tables is not None:
            name = fresh(graph, f"{node.output}.composed")
            constants[name] = joined(part.astype(np.float32) for part in tables)
            attributes = {**node.attributes, "strides": (1,) * len(tables)}
            node = replace(node, inputs=(first.inputs[0], name), attributes=attributes)
        writers[node.output] = node
        nodes += _turned(graph, node, constants.get(node.inputs[-1]), shapes) or [node]
    return prune(rebuilt(graph, nodes, constants=constants, shapes=shapes)) if constants else graph


def _turned(graph: Graph, node: Node, table: Array | None, shapes: dict[str, Shape]) -> list[Node] | None:
    """Return a composed take as reshape, transposition and reshape, where it only turns axes."""
    if table is None:
        return None
    source = node.inputs[0]
    base, axes = axes_of(node.attributes["shape"], node.attributes["strides"], table)
    ordered = sorted(axes, key=lambda axis: -axis.stride)
    natural = [prod(axis.extent for axis in ordered[index + 1 :]) for index in range(len(ordered))]
    whole = prod(axis.extent for axis in axes) == prod(graph.shapes[source])
    if base or not whole or any(axis.table for axis in axes) or [axis.stride for axis in ordered] != natural:
        return None
    return at_once(graph, node, (source, [((axis.extent, axis.stride),) for axis in axes], 2), shapes)


def _composed(graph: Graph, first: Node, then: Node, made: dict[str, Array]) -> list[_Places] | None:
    """Return the places in the first one's source, an axis of the second each."""
    shape = first.attributes["shape"]
    inner, outer = (_places(graph.constants | made, node) for node in (first, then))
    if inner is None or outer is None:
        return None
    natural = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    start, taken, found = sum(int(part[0]) for part in inner), set[int](), list[_Places]()
    for part in outer:
        digits = [part // step % extent for step, extent in zip(natural, shape, strict=True)]
        used = {axis for axis, each in enumerate(digits) if each.any()}
        if used & taken:
            return None
        taken |= used
        found.append(sum((inner[axis][digits[axis]] - inner[axis][0] for axis in used), np.zeros_like(part)))
    for index, part in enumerate(found):
        start += int(part.min())
        found[index] = part - part.min()
    found[0] = found[0] + start
    return found


def _places(constants: dict[str, Array], node: Node) -> list[_Places] | None:
    """Return how far each element of each axis lies from the first; None where some are not taken, or lie before it."""
    tables = split_table(constants[node.inputs[1]], node.attributes["shape"])
    if any(part.min() < 0 for part in tables) or min(node.attributes["strides"]) < 0:
        return None
    return [part.astype(np.int64) * stride for part, stride in zip(tables, node.attributes["strides"], strict=True)]
