"""Whole numbers in fp32, for backends that compute in nothing else: exact below 2^24, infinite from there on.

What the import cannot show to stay below (`Graph.beyond`) is looked at where it is stored. Terms of a sum, of which
some together may pass 2^24 although all of them stay below, are divided into groups of bits, few enough that fp32 adds
each group exactly; the groups' sums are put together from the highest on. A sum of products is infinite where the sizes
of its terms pass 2^24 together. A cast to floating point takes the number before it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import ceil, log2, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import UnsupportedNode
from kernels.ir.compositions import trunc, whole
from kernels.ir.expressions import Expression
from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.ir.shapes import output_shape
from kernels.ir.types import is_whole
from kernels.passes.prune import prune
from kernels.passes.rewrite import rebuilt, renamed

from .bits import bits_in_single, is_of_bits

_BITS = 24
_MOST = 2 ** (_BITS - 2)
"""Terms of a sum, whose groups of one bit are exact."""


def in_single(graph: Graph) -> Graph:
    """Return the graph with all its tensors in fp32. Raises UnsupportedNode where it is known not to hold one."""
    if not any(map(is_whole, graph.types.values())):
        return graph
    if refused := next(filter(None, graph.beyond.values()), ""):
        raise UnsupportedNode(refused)
    constants = {name: np.asarray(array, np.float32) for name, array in graph.constants.items()}
    steps = Steps(replace(graph, constants=constants, shapes=dict(graph.shapes)))
    before: dict[str, str] = {}
    made = producers(graph)
    for node in graph.nodes:
        is_cast = node.op == "reshape" and not is_whole(graph.types[node.output])
        node = renamed(node, before) if is_cast else node
        if is_of_bits(node):
            bits_in_single(steps, node)
        elif (total := _divided(graph, made, node)) is not None:
            shape = {"shape": graph.shapes[node.output]}
            steps.nodes.append(replace(node, op="reshape", inputs=(_mean(steps, total),), attributes=shape))
        elif node.output not in graph.beyond:
            steps.nodes.append(node)
        else:
            before[node.output] = found = _exact(steps, node) if _adds(node) else steps.like(node, *node.inputs)
            steps.nodes.append(replace(node, op="map", inputs=(found,), attributes={"expression": whole("a")}))
    new = prune(rebuilt(steps.graph, steps.nodes))
    return replace(new, types=dict.fromkeys(new.shapes, "f32"), beyond={})


def _adds(node: Node) -> bool:
    a = node.attributes
    return (
        node.op in ("reduce", "dense", "matmul")
        and a.get("kind", "sum") == "sum"
        and not a.get("squared")
        and len(node.inputs) < 3
    )


class Steps:
    """Nodes that are written, and the graph with the shapes of their results."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []

    def emit(self, name: str, op: str, inputs: tuple[str, ...], attributes: dict[str, Any]) -> str:
        """Append a node; returns its result."""
        new = Node(name, op, inputs, (f"{name}.single{len(self.nodes)}",), attributes)
        self.graph.shapes[new.output] = output_shape(new, self.graph.shapes)
        self.nodes.append(new)
        return new.output

    def constant(self, name: str, array: npt.NDArray[Any]) -> str:
        """Keep a constant; returns its name."""
        found = f"{name}.single{len(self.nodes)}.{len(self.graph.constants)}"
        self.graph.constants[found] = np.asarray(array, np.float32)
        self.graph.shapes[found] = array.shape
        return found

    def map(self, name: str, expression: Expression, *inputs: str) -> str:
        """Append an expression."""
        return self.emit(name, "map", inputs, {"expression": expression})

    def like(self, node: Node, *inputs: str) -> str:
        """Append the same of other operands."""
        return self.emit(node.name, node.op, inputs, node.attributes)


def _exact(s: Steps, node: Node) -> str:
    a, b = (*node.inputs, "")[:2]
    count = _terms(s.graph, node)
    if count <= _MOST and (not b or _is_small(s.graph, b)):
        return _in_groups(s, node, a, count, lambda part: s.like(node, *filter(None, (part, b))))
    if count <= _MOST and _is_small(s.graph, a) and b not in s.graph.constants:
        return _in_groups(s, node, b, count, lambda part: s.like(node, a, part))
    found, sizes = s.like(node, *node.inputs), s.like(node, *_sizes(s, node))
    beyond: Expression = ("select", ("less", "a", 0.0), ("neg", "b"), "b")
    return s.map(node.name, ("select", ("less", "b", 2.0**_BITS), "a", beyond), found, sizes)


def _terms(graph: Graph, node: Node) -> int:
    shape = graph.shapes[node.inputs[0]]
    return prod(shape[node.attributes["start"] : node.attributes["stop"]]) if node.op == "reduce" else shape[-1]


def _is_small(graph: Graph, name: str) -> bool:
    """Return whether a factor is at most 1 everywhere."""
    known = graph.constants.get(name)
    return graph.types[name] == "bool" or (known is not None and bool(np.abs(known).max() <= 1))


def _in_groups(s: Steps, node: Node, x: str, count: int, add: Callable[[str], str]) -> str:
    """The sum of x, put together."""
    bits = _BITS - ceil(log2(count))
    found, *lower = _groups(s, node, x, bits, add)
    for each in lower:
        found = s.map(node.name, ("add", ("mul", "a", 2.0**bits), "b"), found, each)
    return found


def _groups(s: Steps, node: Node, x: str, bits: int, add: Callable[[str], str]) -> list[str]:
    """The sum of each group of so many bits, from the highest on; all but the highest are at least 0."""
    sums, size = list[str](), 2.0**bits
    for _ in range(ceil(_BITS / bits) - 1):
        higher = s.map(node.name, ("floor", ("mul", "a", 1 / size)), x)
        sums.append(add(s.map(node.name, ("sub", "a", ("mul", "b", size)), x, higher)))
        x = higher
    return [add(x), *reversed(sums)]


def _divided(graph: Graph, made: Mapping[str, Node], node: Node) -> Node | None:
    """The sum of which a node is the mean, cut off, where some of its terms may pass 2^24."""
    total = made.get(node.inputs[0])
    if total is not None and total.op == "reshape":
        total = made.get(total.inputs[0])
    if node.op != "map" or total is None or total.op != "reduce" or total.output not in graph.beyond:
        return None
    count = _terms(graph, total)
    is_mean = node.attributes["expression"] == trunc(("div", "a", float(count)))
    return total if is_mean and _adds(total) and count <= _MOST else None


def _mean(s: Steps, node: Node) -> str:
    """The quotient of groups of a sum, one after the other, as one divides by hand. What is left of a group's sum is
    below the number of terms, so that with the group below it stays under 2^24."""
    count = _terms(s.graph, node)
    bits = _BITS - 1 - ceil(log2(count))
    found = left = ""
    for total in _groups(s, node, node.inputs[0], bits, lambda part: s.like(node, part)):
        if found:
            found = s.map(node.name, ("mul", "a", 2.0**bits), found)
            total = s.map(node.name, ("add", ("mul", "a", 2.0**bits), "b"), left, total)
        more = s.map(node.name, ("floor", ("div", "a", float(count))), total)
        left = s.map(node.name, ("sub", "a", ("mul", "b", float(count))), total, more)
        found = s.map(node.name, ("add", "a", "b"), found, more) if found else more
    return s.map(node.name, ("add", "a", ("mul", ("less", "a", 0.0), ("less", 0.0, "b"))), found, left)


def _sizes(s: Steps, node: Node) -> Iterator[str]:
    """The operands without their signs."""
    for name in node.inputs:
        if name in s.graph.constants:
            sizes = f"{name}.size"
            s.graph.constants[sizes] = np.abs(s.graph.constants[name])
            s.graph.shapes[sizes] = s.graph.shapes[name]
            yield sizes
        else:
            yield s.map(node.name, ("abs", "a"), name)
