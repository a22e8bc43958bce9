"""Attention within windows of a picture reads and writes the picture's own rows: no copy cuts it into windows.

An exporter moves the picture's rows into the order of windows, perhaps rolled (Swin), computes a dense layer, attention
and another dense layer, and moves the rows back. Dense layers compute each row by itself. So the rows stay where they
are, and the attention gets a list, its fifth input (windows, rows): row r of window w is row list[w, r] of a picture.
`windows` of its attributes says how many a picture has; strides of a batch in `q`, `k`, `v` and `out` are those of a
picture then, and those of a row those of the picture's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Array, Graph, Node

from .compose_moves import in_blocks
from .prune import prune
from .rewrite import fresh, producers, rebuilt
from .row_moves import MOVES, Rows, moved

_FARTHEST = 1 << 24
"""Numbers of rows that fp32 holds."""


@dataclass(frozen=True)
class _Order:
    """Moves from `root` to a node that put all rows into another order."""

    node: Node
    root: str
    rows: Rows


def attend_windows(graph: Graph) -> Graph:
    """Take out the two copies around an attention and the dense layers beside it, where one undoes the other."""
    for name in [node.output for node in graph.nodes if node.op == "attention"]:
        graph = _in_place(graph, next(node for node in graph.nodes if node.output == name))
    return prune(graph)


def _in_place(graph: Graph, node: Node) -> Graph:
    sizes, writers = node.attributes["sizes"], producers(graph)
    batch, heads, rows, keys, _, columns = sizes
    width, out = graph.shapes[node.inputs[0]][-1], heads * columns
    places = [node.attributes[word] for word in "qkv"]
    side_by_side = all((b, r) == (rows * width, width) and start + h <= width for start, b, h, r in places)
    one = len(set(node.inputs[:3])) == 1 and {each.name for each in graph.consumers(node.inputs[0])} == {node.name}
    if not one or not side_by_side or rows != keys or node.attributes["out"] != (0, rows * out, columns, out):
        return graph
    before = _ordered_before(graph, node.inputs[0], writers)
    behind = _ordered_behind(graph, node.output, out, writers)
    if before is None or behind is None or len(before.rows) != batch * rows or len(behind.rows) != batch * rows:
        return graph
    if not np.array_equal(before.rows[behind.rows], np.arange(batch * rows)):
        return graph
    _, step, table = in_blocks(before.rows, of=rows)
    table = table if step == len(table) else before.rows
    if table.max() >= _FARTHEST:
        return graph
    listed = fresh(graph, f"{node.output}.places")
    constants: dict[str, Array] = {listed: table.reshape(-1, rows).astype(np.float32)}
    attributes = {**node.attributes, "windows": len(table) // rows, "out": (0, len(table) * out, columns, out)}
    attributes |= {word: (s, len(table) * width, h, r) for word, (s, _, h, r) in zip("qkv", places, strict=True)}
    bias, _, *factors = (*node.inputs[3:], "", "") if len(node.inputs) < 5 else node.inputs[3:]
    new = replace(node, inputs=(*node.inputs[:3], bias, listed, *factors), attributes=attributes)
    found = {node.output: new} | {each.node.output: _flat(graph, each) for each in (before, behind)}
    return rebuilt(graph, [found.get(each.output, each) for each in graph.nodes], constants=constants)


def _flat(graph: Graph, order: _Order) -> Node:
    node = order.node
    return Node(node.name, "reshape", (order.root,), node.outputs, {"shape": graph.shapes[node.output]})


def _ordered_before(graph: Graph, name: str, writers: Mapping[str, Node]) -> _Order | None:
    """The order of rows from which a tensor is computed row by row."""
    while (node := writers.get(name)) is not None:
        found = _order(graph, node, graph.shapes[name][-1], writers)
        if found is not None or not _is_by_row(graph, node):
            return found
        name = _rows_of(graph, node)
        if len(graph.consumers(name)) != 1 or name in graph.outputs:
            return None
    return None


def _ordered_behind(graph: Graph, name: str, columns: int, writers: Mapping[str, Node]) -> _Order | None:
    """The order into which rows are put that are computed row by row of a tensor of so many columns."""
    last = ""
    while name not in graph.outputs and len(readers := graph.consumers(name)) == 1:
        (node,) = readers
        if node.op in MOVES:
            last, name = node.output, node.output
            continue
        found = _order(graph, writers[last], columns, writers) if last else None
        if found is not None or not _is_by_row(graph, node) or _rows_of(graph, node) != name:
            return found
        name, columns, last = node.output, graph.shapes[node.output][-1], ""
    return None


def _order(graph: Graph, node: Node, columns: int, writers: Mapping[str, Node]) -> _Order | None:
    chain = moved(graph, node.output, writers) if node.op in MOVES else None
    if chain is None or not chain.moves or chain.unit != columns:
        return None
    whole = np.array_equal(np.sort(chain.rows), np.arange(prod(graph.shapes[chain.root]) // columns))
    return _Order(node, chain.root, chain.rows) if whole else None


def _rows_of(graph: Graph, node: Node) -> str:
    """The operand that is no constant."""
    return next(name for name in node.inputs if name and name not in graph.constants)


def _is_by_row(graph: Graph, node: Node) -> bool:
    """Whether a node computes each row of its only operand by itself, and gives as many."""
    others = [name for name in node.inputs if name not in graph.constants]
    if len(others) != 1 or node.op not in {"dense", "row_norm", "reshape", "add", "mul", "map", *ACTIVATIONS}:
        return False
    before, after = graph.shapes[others[0]], graph.shapes[node.output]
    if node.op in ("dense", "row_norm"):
        return node.inputs[0] == others[0]
    if node.op == "reshape":
        return before[-1] == after[-1]
    columns = all(
        constant.size in (1, constant.shape[-1] if constant.ndim else 1)
        for constant in (graph.constants[name] for name in node.inputs if name in graph.constants)
    )
    return before == after and columns
