"""Rows stay where they are: no copy puts them into the order of windows, where all that reads them works row by row.

An exporter moves the rows of a picture into windows, perhaps rolled (Swin) or far apart (MaxViT's grid), computes dense
layers, normalisations and attention, and moves the rows back. Only attention asks in which order they are. So it gets a
list, its fifth input (windows, rows): row r of window w is row list[w, r] of a picture. `windows` of its attributes
says how many a picture has; strides of a batch in `q`, `k`, `v` and `out` are those of a picture then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.dims import TO_ROWS
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.programs import in_floats
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, prune, rebuilt

from .compose_moves import copied, in_blocks, of_rows
from .row_moves import BY_ELEMENT, MOVES, RowMoves, Rows

_FARTHEST = 1 << 24
"""Numbers of rows that fp32 holds."""


@dataclass(frozen=True)
class _Order:
    """A tensor that would be rows of `source`, `width` numbers each, in this order; see `Moved` for its axes."""

    source: str
    width: int
    rows: Rows
    axis: int | None = None


def rows_in_place(graph: Graph) -> Graph:
    """The graph with fewer copies of rows; as it was where there would not be fewer elements to copy."""
    if not of_rows(graph):
        return graph
    kept = keep_rows(graph)
    return kept if _copied_elements(kept) < _copied_elements(graph) else graph


def keep_rows(graph: Graph) -> Graph:
    """The graph where rows are moved only before what asks for their order, whether that is less work or not."""
    return prune(_Keeping(graph).kept())


def _copied_elements(graph: Graph) -> int:
    return sum(prod(graph.shapes[node.output]) for node in graph.nodes if node.op in MOVES - {"reshape"})


class _Keeping:
    """One walk over a graph; `orders` are tensors that are not written unless somebody needs them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._moves = RowMoves(graph)
        self._orders: dict[str, _Order] = {}
        self._nodes: list[Node] = []
        self._written: set[str] = set()
        self._constants: dict[str, Array] = {}
        self._shapes: dict[str, Shape] = {}
        self._names: dict[tuple[str, str], str] = {}

    def kept(self) -> Graph:
        for node in self._graph.nodes:
            if not (self._moved(node) or self._by_row(node) or self._attention(node)):
                for name in node.inputs:
                    self._write(name)
                self._add(node)
        for name in self._graph.outputs:
            self._write(name)
        return rebuilt(self._graph, self._nodes, constants=self._constants, shapes=self._shapes)

    def _add(self, node: Node) -> None:
        self._nodes.append(node)
        self._written |= set(node.outputs)

    def _named(self, name: str, word: str, shape: Shape) -> str:
        """A tensor beside another one, whose shape is noted."""
        found = self._names.setdefault((name, word), fresh(self._graph, f"{name}.{word}"))
        self._shapes[found] = shape
        return found

    def _shape(self, name: str) -> Shape:
        return self._shapes[name] if name in self._shapes else self._graph.shapes[name]

    def _moved(self, node: Node) -> bool:
        """Note a move that puts all rows of a tensor into another order."""
        chain = self._moves.of(node.output) if node.op in MOVES else None
        if chain is None or chain.root == node.output:
            return False
        before, rows = self._orders.get(chain.root), chain.rows
        if before is None and not chain.moves:
            return False
        if before is not None:
            is_other = before.axis is not None or chain.is_picture
            if before.width != chain.width or is_other or np.any(rows < 0):
                return False
            rows = before.rows[rows]
        elif chain.is_picture and chain.axis == 1 and chain.moves == 0:
            return False
        source = before.source if before is not None else chain.root
        if not np.array_equal(np.sort(rows, axis=None), np.arange(prod(self._shape(source)) // chain.width)):
            return False
        if before is None and chain.is_picture:
            source = self._pixels(chain.root)
        self._orders[node.output] = _Order(source, chain.width, rows, chain.axis)
        return True

    def _pixels(self, name: str) -> str:
        """A picture's pixels, each a row of its channels."""
        n, c, h, w = self._graph.shapes[name]
        turned = self._named(name, "pixels", (n, h, w, c))
        if turned not in self._written:
            self._write(name)
            self._add(Node(turned, "transpose", (name,), (turned,), {"perm": TO_ROWS}))
        return turned

    def _by_row(self, node: Node) -> bool:
        """Compute rows where they are."""
        names = [name for name in node.inputs if name and name not in self._graph.constants]
        orders = [self._orders.get(name) for name in names]
        first = orders[0] if orders else None
        if first is None or not _is_by_row(self._graph, node) or len(node.outputs) != 1:
            return False
        for name, order in zip(names, orders, strict=True):
            fits = order is not None and order.axis is None and self._graph.shapes[name][-1] == order.width
            if not fits or order is None or not np.array_equal(order.rows.reshape(-1), first.rows.reshape(-1)):
                return False
        kept = {name: self._kept(name) for name in names}
        self._ordered(node, replace(node, inputs=tuple(kept.get(name, name) for name in node.inputs)), first.rows)
        return True

    def _kept(self, name: str) -> str:
        """The rows of a tensor's source in its shape."""
        order, shape = self._orders[name], self._graph.shapes[name]
        if self._shape(order.source) == shape:
            return order.source
        kept = self._named(name, "flat", shape)
        if kept not in self._written:
            self._add(Node(kept, "reshape", (order.source,), (kept,), {"shape": shape}))
        return kept

    def _ordered(self, node: Node, new: Node, rows: Rows, width: int = 0) -> None:
        """Let a node write rows where they are; what it would have written is noted."""
        shape = self._graph.shapes[node.output]
        placed = self._named(node.output, "placed", shape)
        self._add(replace(new, outputs=(placed,)))
        self._orders[node.output] = _Order(placed, width or shape[-1], rows.reshape(-1))

    def _attention(self, node: Node) -> bool:
        """Let attention find the rows of its windows by a list."""
        order = self._orders.get(node.inputs[0]) if node.op == "attention" else None
        if order is None or len(set(node.inputs[:3])) != 1 or order.axis is not None or any(node.inputs[4:5]):
            return False
        batch, heads, rows, keys, _, columns = node.attributes["sizes"]
        width, out = self._graph.shapes[node.inputs[0]][-1], heads * columns
        places = [node.attributes[word] for word in "qkv"]
        whole = all((b, r) == (rows * width, width) and start + h <= width for start, b, h, r in places)
        natural = node.attributes["out"] == (0, rows * out, columns, out) and order.width == width
        if not whole or not natural or rows != keys or order.rows.size != batch * rows:
            return False
        flat = order.rows.reshape(-1)
        _, step, table = in_blocks(flat, of=rows)
        table = table if step == len(table) else flat
        if table.max() >= _FARTHEST:
            return False
        listed = fresh(self._graph, f"{node.output}.places")
        self._constants[listed] = table.reshape(-1, rows).astype(np.float32)
        attributes = {**node.attributes, "windows": len(table) // rows, "out": (0, len(table) * out, columns, out)}
        attributes |= {word: (s, len(table) * width, h, r) for word, (s, _, h, r) in zip("qkv", places, strict=True)}
        bias, _, factors = (*node.inputs[3:], "", "", "")[:3]
        beside = (bias, listed, factors) if factors else (bias, listed)
        inputs = (*(self._kept(node.inputs[0]),) * 3, *beside)
        self._ordered(node, replace(node, inputs=inputs, attributes=attributes), flat, out)
        return True

    def _write(self, name: str) -> None:
        """Write a tensor that was noted only."""
        order = self._orders.get(name)
        if order is None or name in self._written:
            return
        shape, target = self._graph.shapes[name], name
        if order.axis is not None:  # rows first, then their numbers along that axis
            target = self._named(name, "turned", (*shape[: order.axis], *shape[order.axis + 1 :], order.width))
        source = (order.source, prod(self._shape(order.source)) // order.width, order.width)
        node = Node(name, "reshape", (), (target,), {"shape": self._shape(target)})
        for each in copied(node, source, order.rows.reshape(-1), self._constants, self._shapes):
            self._add(each)
        if order.axis is not None:
            self._turn(target, name, order.axis)

    def _turn(self, source: str, name: str, axis: int) -> None:
        """Write rows along an axis that is not the last one."""
        shape = self._graph.shapes[name]
        outer, inner = shape[:axis], shape[axis + 1 :]
        if len(shape) == 4:
            perm = (*range(axis), 3, *range(axis, 3))
            self._add(Node(name, "transpose", (source,), (name,), {"perm": perm}))
            return
        flat = self._named(name, "apart", (prod(outer), prod(inner), shape[axis]))
        turned = self._named(name, "swapped", (prod(outer), shape[axis], prod(inner)))
        self._add(Node(name, "reshape", (source,), (flat,), {"shape": self._shapes[flat]}))
        self._add(Node(name, "transpose", (flat,), (turned,), {"perm": (0, 2, 1)}))
        self._add(Node(name, "reshape", (turned,), (name,), {"shape": shape}))


def _is_by_row(graph: Graph, node: Node) -> bool:
    """Return whether a node computes each row of its operands by itself, and gives as many."""
    others = [name for name in node.inputs if name and name not in graph.constants]
    if node.op not in {"dense", "row_norm", *BY_ELEMENT, *ACTIVATIONS}:
        return False
    if node.op in ("dense", "row_norm"):
        return others == [node.inputs[0]]
    constants = [graph.constants[name] for name in node.inputs if name in graph.constants]
    columns = all(each.size in (1, each.shape[-1] if each.ndim else 1) for each in constants)
    return (
        columns
        and in_floats(node, graph.types)
        and all(graph.shapes[name] == graph.shapes[node.output] for name in others)
    )
