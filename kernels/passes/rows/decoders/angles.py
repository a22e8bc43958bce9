"""Rows that are turned by their place (RoFormer, Su et al. 2021), in whatever steps: a half of a row times cosines,
less or plus the other half times sines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from kernels.ir.activations import expression_of
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh
from kernels.passes.rows.strided_looks import multiplied

from .places import tables_of


@dataclass(frozen=True)
class Term:
    """Elements of x from `first` on, times a number, and by those of another tensor from `by_first` on."""

    factor: float
    x: str
    first: int
    by: str = ""
    by_first: int = 0

    def further(self, count: int) -> Term:
        return replace(self, first=self.first + count, by_first=self.by_first + count)


Part = tuple[int, tuple[Term, ...]]
"""A number of elements along the last axis, and the terms of which they are the sum."""


@dataclass(frozen=True)
class Turn:
    """x, of which `turned` numbers of a row are turned by the cosines and the sines of these tensors' elements."""

    x: str
    turned: int
    cosines: tuple[str, int]
    sines: tuple[str, int]


class Turns:
    """Turned tensors of a graph, and the tables of their angles. `position`: the input; `last`: its largest value."""

    def __init__(self, graph: Graph, writers: Mapping[str, Node], position: str, last: int) -> None:
        self._graph, self._writers, self._position, self._last = graph, writers, position, last
        self._placed = _placed(graph, position)
        self._tables: dict[tuple[object, ...], tuple[tuple[str, str], bool]] = {}
        self.constants: dict[str, Array] = {}
        self.shapes: dict[str, Shape] = {}

    def of(self, node: Node) -> Turn | None:
        """The turn whose result a node is."""
        shape = self._graph.shapes[node.output]
        if (node.op != "concat" and expression_of(node) is None) or node.output in self._placed or len(shape) < 2:
            return None
        parts = self._parts(node.output)
        if len(parts) < 2 or parts[0][0] != parts[1][0] or len(parts[0][1]) != 2 or len(parts[1][1]) != 2:
            return None
        half, x = parts[0][0], parts[0][1][0].x
        rest = [Term(1.0, x, 2 * half)] if 2 * half < shape[-1] else []
        if self._graph.shapes[x] != shape or [list(terms) for _, terms in parts[2:]] != ([rest] if rest else []):
            return None
        (a, b), (c, d) = (sorted(terms, key=lambda term: term.first) for _, terms in parts[:2])
        factors = (a.factor, b.factor, c.factor, d.factor)
        is_turned = factors == (1, -1, 1, 1) and (a.first, b.first, c.first, d.first) == (0, half, 0, half)
        if not is_turned or {a.x, b.x, c.x, d.x} != {x} or not all(term.by for term in (a, b, c, d)):
            return None
        same = self._key(a.by, a.by_first, half) == self._key(d.by, d.by_first, half)
        if not same or self._key(b.by, b.by_first, half) != self._key(c.by, c.by_first, half):
            return None
        return Turn(x, 2 * half, (a.by, a.by_first), (b.by, b.by_first))

    def angles(self, turn: Turn, rows: int) -> tuple[list[Node], tuple[str, str], bool]:
        """Return new nodes, cosines and sines, and whether these are of each place; else they are (1, rows, half)."""
        half = turn.turned // 2
        key = (*(self._key(*each, half) for each in (turn.cosines, turn.sines)), rows)
        if key in self._tables:
            return [], *self._tables[key]
        nodes = [self._own(name, first, half) for name, first in (turn.cosines, turn.sines)]
        names, by_place = [each[-1].output for each in nodes], False
        every = [*self._graph.nodes, *nodes[0], *nodes[1]]
        whole = replace(self._graph, nodes=every, shapes={**self._graph.shapes, **self.shapes})
        tables = tables_of(whole, self._position, self._last, (names[0], names[1]))
        if tables is not None:
            names, by_place, nodes = [f"{name}.by_place" for name in names], True, []
            self.constants |= dict(zip(names, tables, strict=True))
        self._tables[key] = (names[0], names[1]), by_place
        return [node for each in nodes for node in each], *self._tables[key]

    def _own(self, name: str, first: int, half: int) -> list[Node]:
        """The nodes that take the angles of rows (1, rows, half) from a tensor."""
        shape = self._graph.shapes[name]
        flat, cut, apart = (fresh(self._graph, f"{name}.{word}.{first}") for word in ("flat", "half", "angles"))
        count = prod(shape[:-1])
        self.shapes |= {flat: (count, shape[-1]), cut: (count, half), apart: (1, count, half)}
        return [
            Node(name, "reshape", (name,), (flat,), {"shape": self.shapes[flat]}),
            Node(name, "slice", (flat,), (cut,), {"axis": 1, "start": first, "stop": first + half}),
            Node(name, "reshape", (cut,), (apart,), {"shape": self.shapes[apart]}),
        ]

    def _parts(self, name: str) -> list[Part]:
        node = self._writers.get(name)
        whole: list[Part] = [(self._graph.shapes[name][-1], (Term(1.0, name, 0),))]
        if node is None or name in self._placed:
            return whole
        last = len(self._graph.shapes[name]) - 1
        if node.op == "reshape" and self._graph.shapes[node.inputs[0]] == self._graph.shapes[name]:
            return self._parts(node.inputs[0])
        if node.op == "slice" and node.attributes["axis"] == last:
            return _cut(self._parts(node.inputs[0]), node.attributes["start"], node.attributes["stop"])
        if node.op == "concat" and node.attributes["axis"] == last:
            return [part for each in node.inputs for part in self._parts(each)]
        expression, by = expression_of(node), multiplied(self._graph, node)
        if expression == ("neg", "a") or (by is not None and abs(by[1]) == 1):
            x, number = by or (node.inputs[0], -1.0)
            return [(n, tuple(replace(t, factor=t.factor * number) for t in terms)) for n, terms in self._parts(x)]
        match expression, node.inputs:
            case ("mul", "a", "b"), (x, y) if (x in self._placed) != (y in self._placed):
                return self._by_placed(*((y, x) if x in self._placed else (x, y)), whole)
            case ("add" | "sub" as function, "a", "b"), (x, y) if self._graph.shapes[x] == self._graph.shapes[y]:
                found = _sum(self._parts(x), self._parts(y), 1.0 if function == "add" else -1.0)
                return found if all(term.by for _, terms in found for term in terms) else whole
        return whole

    def _by_placed(self, x: str, by: str, whole: list[Part]) -> list[Part]:
        """A product with a tensor that has a number for each element of a row."""
        found, first = list[Part](), 0
        if self._graph.shapes[by][-1] != self._graph.shapes[x][-1]:
            return whole
        for count, terms in self._parts(x):
            if len(terms) != 1 or terms[0].by:
                return whole
            found.append((count, (replace(terms[0], by=by, by_first=first),)))
            first += count
        return found

    def _key(self, name: str, first: int, count: int) -> tuple[object, ...]:
        """Identify `count` columns: two tensors' that are computed alike from the same have the same key."""
        node, shape = self._writers.get(name), self._graph.shapes[name]
        if (constant := self._graph.constants.get(name)) is not None:
            columns = constant if shape[-1:] in ((), (1,)) else constant[..., first : first + count]
            return columns.shape[-2:], columns.tobytes()
        if node is None:
            return name, first
        source = self._graph.shapes[node.inputs[0]]
        if node.op == "reshape" and source[-1:] == shape[-1:]:
            return self._key(node.inputs[0], first, count)
        if node.op == "slice" and node.attributes["axis"] == len(shape) - 1:
            return self._key(node.inputs[0], first + node.attributes["start"], count)
        if node.op == "concat" and node.attributes["axis"] == len(shape) - 1:
            for each in node.inputs:
                width = self._graph.shapes[each][-1]
                if first < width:
                    return self._key(each, first, count) if first + count <= width else (name, first)
                first -= width
        if (expression := expression_of(node)) is not None:
            wide = [self._graph.shapes[each][-1:] == shape[-1:] for each in node.inputs]
            return expression, *(self._key(x, first if w else 0, count) for x, w in zip(node.inputs, wide, strict=True))
        if node.op == "gather" and node.attributes["axis"] == 0 and len(source) == 2:
            return "gather", node.inputs[1], self._key(node.inputs[0], first, count)
        return name, first


def _placed(graph: Graph, position: str) -> frozenset[str]:
    """The tensors that the position alone decides."""
    found = {position}
    for node in graph.nodes:
        computed = [name for name in node.inputs if name and name not in graph.constants]
        if found.issuperset(computed):
            found |= {*node.outputs}
    return frozenset(found)


def _cut(parts: list[Part], start: int, stop: int) -> list[Part]:
    found, first = list[Part](), 0
    for count, terms in parts:
        low, high = max(start, first), min(stop, first + count)
        if low < high:
            found.append((high - low, tuple(term.further(low - first) for term in terms)))
        first += count
    return found


def _sum(left: list[Part], right: list[Part], sign: float) -> list[Part]:
    ends = sorted({*np.cumsum([n for n, _ in left]).tolist(), *np.cumsum([n for n, _ in right]).tolist()})
    found, first = list[Part](), 0
    for end in ends:
        ((_, a),), ((_, b),) = _cut(left, first, end), _cut(right, first, end)
        found.append((end - first, (*a, *(replace(term, factor=term.factor * sign) for term in b))))
        first = end
    return found
