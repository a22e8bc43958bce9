"""Nodes that compute something of one row, made nodes that compute it of every row at once.

A loop over rows is imported for one row, whose number is a tensor. Then each node that depends on that number gets an
axis more, the first one, with an element for each row. There are few canonical operations (`kernels/ir/graph.py`), and
each of them can do that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod

import numpy as np

from kernels.frontend.onnx.extent import Count
from kernels.frontend.onnx.steps import Steps
from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Node
from kernels.ir.taking import split_table


class EveryRow:
    """`made`: by the name of a tensor of one row that of the tensor (rows, ...) of all."""

    def __init__(self, s: Steps, rows: int, made: Mapping[str, str]) -> None:
        self.s, self.rows, self.made = s, rows, dict(made)

    @classmethod
    def by_number(cls, s: Steps, rows: int, number: str) -> EveryRow:
        """Make rows that differ in a tensor of their number."""
        shape = (rows, *(1,) * len(s.to.shapes[number]))
        return cls(s, rows, {number: s.constant(np.arange(rows, dtype=np.int32).reshape(shape))})

    def extend(self, nodes: Iterable[Node]) -> None:
        """Append nodes to the graph, those that depend on the row's number for all rows."""
        for node in nodes:
            if self.made.keys().isdisjoint(node.inputs):
                self.s.to.nodes.append(node)
            else:
                rule = _RULES.get(node.op, _by_first_axis)
                self.made[node.output] = rule(self, node)

    def depends(self, count: Count) -> bool:
        """Return whether the rows differ in it."""
        parts = (count.expression,) if isinstance(count.expression, str) else count.expression[1:]
        return any(self.depends(part) if isinstance(part, Count) else part in self.made for part in parts)

    def of(self, name: str) -> str:
        """The tensor of all rows, also of one in which they do not differ."""
        if name in self.made:
            return self.made[name]
        shape = self.s.shape(name)
        return self.s.expand(self.s.reshape(name, (1, *shape)), (self.rows, *shape))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of one row."""
        return self.s.to.shapes[name]


def _map(e: EveryRow, node: Node) -> str:
    rank = len(e.shape(node.output))
    operands = [
        e.s.reshape(e.made[name], (e.rows, *(1,) * (rank - len(e.shape(name))), *e.shape(name)))
        if name in e.made
        else name
        for name in node.inputs
    ]
    if node.op == "map":
        return e.s.emit("map", operands, node.attributes)
    return e.s.map((node.op, "a", "b"), *operands)


def _transpose(e: EveryRow, node: Node) -> str:
    return e.s.transpose(e.made[node.inputs[0]], (0, *(axis + 1 for axis in node.attributes["perm"])))


def _slice(e: EveryRow, node: Node) -> str:
    a = node.attributes
    return e.s.slice(e.made[node.inputs[0]], a["axis"] + 1, a["start"], a["stop"])


def _take(e: EveryRow, node: Node) -> str:
    x, a = node.inputs[0], node.attributes
    tables = split_table(e.s.to.weights[node.inputs[1]], a["shape"])
    strides = (prod(e.shape(x)), *a["strides"])
    return e.s.take(e.made[x], (e.rows, *a["shape"]), [np.arange(e.rows), *tables], strides, a["value"])


def _gather(e: EveryRow, node: Node) -> str:
    s, (x, indices), axis = e.s, node.inputs, node.attributes["axis"]
    shape, named = e.shape(x), e.shape(indices)
    if indices not in e.made:
        return s.gather(e.made[x], indices, axis + 1)
    if x not in e.made and axis == 0 and shape[0] == e.rows and prod(named) == 1 and _is_number(e, indices):
        return s.reshape(x, (e.rows, *named, *shape[1:]))
    before, extent, behind, count = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]), prod(named)
    places = s.reshape(e.made[indices], (e.rows, count))
    if x in e.made:  # elements of one row behind those of the row before
        s.places(e.rows * extent)
        first = np.arange(e.rows, dtype=np.float32).reshape(-1, 1) * extent
        inside = ("select", ("less", "a", 0.0), ("add", "a", float(extent)), "a")
        own = ("add", ("min", ("max", inside, 0.0), extent - 1.0), "b")
        places = s.map(own, places, first)
        x = s.transpose(s.reshape(e.made[x], (e.rows, before, extent, behind)), (1, 0, 2, 3))
        x = s.reshape(x, (before, e.rows * extent, behind))
    else:
        x = s.reshape(x, (before, extent, behind))
    found = s.reshape(s.gather(x, places, 1), (before, e.rows, count, behind))
    return s.reshape(s.transpose(found, (1, 0, 2, 3)), (e.rows, *shape[:axis], *named, *shape[axis + 1 :]))


def _is_number(e: EveryRow, name: str) -> bool:
    """Return whether it holds the row's number itself."""
    s = e.s
    writers = {node.output: node for node in s.to.nodes}
    new = e.made[name]
    while new in writers and writers[new].op == "reshape":
        new = writers[new].inputs[0]
    stored = s.to.weights.get(new)
    return stored is not None and np.array_equal(stored.reshape(-1), np.arange(e.rows))


def _reduce(e: EveryRow, node: Node) -> str:
    a = node.attributes
    return e.s.emit("reduce", (e.made[node.inputs[0]],), {**a, "start": a["start"] + 1, "stop": a["stop"] + 1})


def _softmax(e: EveryRow, node: Node) -> str:
    return e.s.emit("softmax", (e.made[node.inputs[0]],), {**node.attributes, "axis": node.attributes["axis"] + 1})


def _product(e: EveryRow, node: Node) -> str:
    """matmul and dense: rows of all, or a product for each row."""
    s, (a, b) = e.s, node.inputs[:2]
    if b not in e.made:
        left = s.reshape(e.made[a], (e.rows * e.shape(a)[0], *e.shape(a)[1:]))
        right = b if len(e.shape(b)) == 2 else s.reshape(e.of(b), (e.rows * e.shape(b)[0], *e.shape(b)[1:]))
        found = s.emit(node.op, (left, right, *node.inputs[2:]), node.attributes)
        return s.reshape(found, (e.rows, *e.shape(node.output)))
    return s.reshape(s.matmul(e.of(a), _aligned(e, a, b)), (e.rows, *e.shape(node.output)))


def _aligned(e: EveryRow, a: str, b: str) -> str:
    ones = (1,) * (len(e.shape(a)) - len(e.shape(b)))
    return e.s.reshape(e.made[b], (e.rows, *ones, *e.shape(b)))


def _by_first_axis(e: EveryRow, node: Node) -> str:
    """Import a node that treats each element of its first axis, a picture, by itself, and has constants besides."""
    s, (x, *others) = e.s, node.inputs
    if any(name in e.made for name in others):
        s.node.reject(f"in it {node.name!r} ({node.op}) reads an operand that differs from turn to turn")
    flat = s.reshape(e.made[x], (e.rows * e.shape(x)[0], *e.shape(x)[1:]))
    return s.reshape(s.emit(node.op, (flat, *others), node.attributes), (e.rows, *e.shape(node.output)))


def _suppress(e: EveryRow, node: Node) -> str:
    """Boxes, orders and their lengths of one row behind those of the row before."""
    s = e.s
    flat = [s.reshape(e.of(name), (e.rows * e.shape(name)[0], *e.shape(name)[1:])) for name in node.inputs]
    return s.reshape(s.emit(node.op, flat, node.attributes), (e.rows, *e.shape(node.output)))


def _roi_align(e: EveryRow, node: Node) -> str:
    """Pictures and boxes of one row behind those of the row before; all boxes are computed."""
    s, shapes = e.s, [e.shape(name) for name in node.inputs]
    x, boxes = (s.reshape(e.of(name), (e.rows * e.shape(name)[0], *e.shape(name)[1:])) for name in node.inputs[:2])
    first = np.arange(e.rows, dtype=np.float32).reshape(-1, 1) * shapes[0][0]
    pictures = s.map(("add", "a", "b"), e.of(node.inputs[2]), first)
    pictures = s.reshape(pictures, (e.rows * shapes[2][0],))
    valid = s.constant(np.array([e.rows * shapes[1][0]]))
    return s.reshape(s.emit(node.op, (x, boxes, pictures, valid), node.attributes), (e.rows, *e.shape(node.output)))


_RULES: Mapping[str, Callable[[EveryRow, Node], str]] = {
    **dict.fromkeys(ACTIVATIONS, lambda e, node: e.s.emit(node.op, (e.made[node.inputs[0]],), node.attributes)),
    **dict.fromkeys(("add", "map", "mul"), _map),
    **dict.fromkeys(("dense", "matmul"), _product),
    "concat": lambda e, node: e.s.concat([e.of(name) for name in node.inputs], node.attributes["axis"] + 1),
    "gather": _gather,
    "reduce": _reduce,
    "reshape": lambda e, node: e.s.reshape(e.made[node.inputs[0]], (e.rows, *node.attributes["shape"])),
    "roi_align": _roi_align,
    "slice": _slice,
    "softmax": _softmax,
    "suppress": _suppress,
    "take": _take,
    "transpose": _transpose,
}
