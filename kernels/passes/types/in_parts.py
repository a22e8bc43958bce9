"""Products of whole numbers of 8 bits in fp32: their sums are exact, or rounded once.

fp32 adds whole numbers exactly as long as the terms' sizes stay below 2^24 together. Where they may not, the terms are
divided into parts that do, and the parts' sums are added as two digits of 12 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import UnsupportedNode
from kernels.ir.expressions import Expression
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.ir.shapes import output_shape
from kernels.ir.types import is_whole
from kernels.passes.rewrite import fresh, rebuilt

_DIGIT = 4096.0
"""Base of the two digits in which parts are added: each digit's sum is exact for as many parts."""
_END = 1 << 24
_SIZE = 255.0
"""The largest size of a number of 8 bits less its zero."""
_MOVES = ("reshape", "transpose", "take", "slice", "pad", "im2col")


def in_parts(graph: Graph, ops: Collection[str]) -> Graph:
    """Return the graph with such products by these operations in fp32. Raises UnsupportedNode where the sum of a
    single window may pass 2^24."""
    by = producers(graph)
    parts = _Parts(replace(graph, constants=dict(graph.constants), shapes=dict(graph.shapes), types=dict(graph.types)))
    for node in graph.nodes:
        is_product = node.op in ops and is_whole(graph.types[node.output])
        if is_product and all(_is_small(graph, by, name) for name in node.inputs[:2]):
            parts.product(node)
        else:
            parts.nodes.append(node)
    return rebuilt(parts.graph, parts.nodes)


def _is_small(graph: Graph, by: Mapping[str, Node], name: str) -> bool:
    """Return whether a factor's numbers come from 8 bits."""
    if name in graph.constants:
        return is_whole(graph.types[name]) and np.abs(graph.constants[name]).max(initial=0) <= _SIZE
    while (node := by.get(name)) is not None and node.op in _MOVES:
        name = node.inputs[0]
    centred = node is not None and node.op == "map" and node.attributes["expression"][0] == "sub"
    return all(graph.types[each] in ("i8", "u8") for each in (node.inputs if node and centred else [name]))


class _Parts:
    """The nodes of a graph, of which some are written anew."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.nodes = graph, list[Node]()

    def product(self, node: Node) -> None:
        """Append a product, or the sum of its parts."""
        node = replace(node, inputs=tuple(map(self._floats, node.inputs)))
        ends, limit = self._ends(node)
        bias = self.graph.constants[node.inputs[2]] if len(node.inputs) > 2 else np.zeros(0)
        largest = np.abs(bias).max(initial=0)
        if len(ends) == 1 and limit + largest < _END:
            self.nodes.append(node)
            return
        parts = [self._part(node, *each) for each in ends]
        if bias.size:
            digits = np.floor(bias / _DIGIT) * _DIGIT if largest >= _END else np.zeros_like(bias)
            shape = (-1, *(1 for _ in self.graph.shapes[node.output][2:]))
            parts += [self._constant(node, each.reshape(shape)) for each in (digits, bias - digits) if each.any()]
        self._add(node, parts)

    def _ends(self, node: Node) -> tuple[list[tuple[int, int]], float]:
        """Return the parts of the terms, and what the size of all is at most."""
        known = self.graph.constants.get(node.inputs[1])
        shape = self.graph.shapes[node.inputs[1]]
        if node.op == "conv":
            extent = shape[1]
            sizes = np.full((extent, 1), _SIZE) if known is None else np.abs(known).reshape(*shape[:2], -1).sum(2).T
        else:
            extent = shape[-2]
            sizes = np.full((extent, 1), _SIZE) if known is None else np.abs(known).reshape(extent, -1)
        sums = np.concatenate([np.zeros((1, sizes.shape[1])), np.cumsum(sizes.astype(np.float64) * _SIZE, axis=0)])
        ends = [0, extent]
        while np.diff(sums[ends], axis=0).max(initial=0) >= _END:
            if len(ends) > extent:
                raise UnsupportedNode(
                    f"{node.name}: the sum of one window may pass 2^24, which fp32 does not hold: use a smaller one"
                )
            ends = [int(end) for end in np.linspace(0, extent, len(ends) + 1).round()]
        return list(pairwise(ends)), float(sums[-1].max(initial=0))

    def _part(self, node: Node, first: int, last: int) -> str:
        """Append the product of some terms: of a convolution of some channels of each group."""
        x, factor = node.inputs[:2]
        if node.op != "conv":
            own, axis = self._slice(node, x, len(self.graph.shapes[x]) - 1, first, last), -2
        else:
            n, c, *extents = self.graph.shapes[x]
            groups, axis = node.attributes["groups"], 1
            apart = self._emit(node, "reshape", (x,), {"shape": (n, groups, c // groups, *extents)})
            apart = self._slice(node, apart, 2, first, last)
            own = self._emit(node, "reshape", (apart,), {"shape": (n, groups * (last - first), *extents)})
        known = self.graph.constants.get(factor)
        if known is None:
            factor = self._slice(node, factor, len(self.graph.shapes[factor]) - 2, first, last)
        else:
            factor = self._constant(node, known.take(range(first, last), axis))
        return self._emit(node, node.op, (own, factor), node.attributes)

    def _add(self, node: Node, parts: list[str]) -> None:
        """Append the sum of whole numbers below 2^24, rounded to fp32 once, however many they are."""
        total: Expression = ("add", "a", "b")
        if len(parts) > 2:
            high = [
                self._emit(node, "map", (part,), {"expression": ("floor", ("mul", "a", 1 / _DIGIT))}) for part in parts
            ]
            rest = {"expression": ("sub", "a", ("mul", "b", _DIGIT))}
            low = [self._emit(node, "map", pair, rest) for pair in zip(parts, high, strict=True)]
            while len(high) > 1:
                high[:2], low[:2] = (
                    [self._emit(node, "map", (some[0], some[1]), {"expression": total})] for some in (high, low)
                )
            parts, total = [*high, *low], ("add", ("mul", "a", _DIGIT), "b")
        expression = total if len(parts) > 1 else "a"
        self.nodes.append(Node(node.name, "map", tuple(parts), node.outputs, {"expression": expression}))

    def _slice(self, node: Node, name: str, axis: int, first: int, last: int) -> str:
        return self._emit(node, "slice", (name,), {"axis": axis, "start": first, "stop": last})

    def _floats(self, name: str) -> str:
        """Return a stored factor in fp32."""
        known = self.graph.constants.get(name)
        return name if known is None or known.dtype == np.float32 else self._stored(f"{name}.single", known)

    def _constant(self, node: Node, array: npt.NDArray[Any]) -> str:
        return self._stored(fresh(self.graph, f"{node.output}.part"), array)

    def _stored(self, name: str, array: npt.NDArray[Any]) -> str:
        single = np.asarray(array, np.float32)
        self.graph.constants[name], self.graph.shapes[name], self.graph.types[name] = single, single.shape, "f32"
        return name

    def _emit(self, node: Node, op: str, inputs: tuple[str, ...], attributes: Mapping[str, Any]) -> str:
        target = fresh(self.graph, f"{node.output}.part")
        new = Node(node.name, op, inputs, (target,), dict(attributes))
        self.graph.shapes[target], self.graph.types[target] = output_shape(new, self.graph.shapes), "f32"
        self.nodes.append(new)
        return target
