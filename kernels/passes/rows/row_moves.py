"""The rows of one tensor of which another one is made, through reshapes, transpositions, slices, concats and pads.

Rows are what products and normalisations work on: the numbers along the last axis, or the channels of a pixel of a
picture (N, C, H, W), pixel after pixel. A chain of moves that leaves them whole is one list of numbers: of each row of
the result the row from which it comes, or -1 for a row of zeros. So a rolled picture that is cut into windows is one
copy (`compose_moves`), or none (`rows_in_place`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from kernels.ir.graph import Graph, Node
from kernels.ir.links import producers
from kernels.ir.programs import held
from kernels.ir.shapes import Shape
from kernels.ir.taking import NOTHING, split_table

Rows = npt.NDArray[np.int64]
MOVES = frozenset({"reshape", "transpose", "slice", "concat", "pad", "take"})
ROW_MAJOR = frozenset({"dense", "row_norm", "attention", "matmul"})
"""Operations whose results lie row-major on a GPU: stacks of channels would have to be unpacked first."""
BY_ELEMENT = frozenset({"add", "mul", "map"})
_MOST = 1 << 22
"""Rows that are listed at most."""


@dataclass(frozen=True)
class Moved:
    """A tensor made of rows of `root`, `width` numbers each.

    `rows` goes by the tensor's axes: without the one along which rows lie (`axis`), or, where that is None, with the
    last one in rows.
    """

    root: str
    is_picture: bool
    width: int
    rows: Rows
    axis: int | None
    moves: int
    """Number of operations in between that copy something."""

    @property
    def flat(self) -> Rows:
        """Row after row, where they lie along the last axis."""
        return self.rows.reshape(-1)


class RowMoves:
    """The rows of those tensors that are not moved, of which the tensors of a graph are made."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._writers = graph, producers(graph)
        self._found: dict[str, Moved | None] = {}
        self.row_major: set[str] = set()
        """Tensors that such operations wrote, what is moved into rows, and what is computed of their elements."""
        for node in graph.nodes:
            names = [name for name in node.inputs if name not in graph.constants]
            chain = self.of(node.output) if node.op in MOVES else None
            in_rows = chain is not None and chain.root != node.output and chain.axis is None
            by_element = node.op in BY_ELEMENT and names and all(name in self.row_major for name in names)
            if node.op in ROW_MAJOR or in_rows or by_element:
                self.row_major |= set(node.outputs)

    def of(self, name: str) -> Moved | None:
        """None where there are no rows, or too many of them."""
        if name not in self._found:
            self._found[name] = self._look(name)
        return self._found[name]

    def _look(self, name: str) -> Moved | None:
        node = self._writers.get(name)
        if name in self._graph.constants:
            return None
        sources = [] if node is None else [self.of(each) for each in _moved_by(node)]
        if node is None or not sources or not (first := sources[0]):
            return self._root(name)
        if any(each is None or each.root != first.root or each.axis != first.axis for each in sources):
            return self._root(name)
        found = _step(self._graph, node, [each for each in sources if each is not None])
        return self._root(name) if found is None else found

    def _root(self, name: str) -> Moved | None:
        shape, node = self._graph.shapes[name], self._writers.get(name)
        if name not in self.row_major and len(shape) == 4:
            n, width, h, w = shape
            rows, axis = np.arange(n * h * w).reshape(n, h, w), 1
        elif node is not None and node.op == "attention":
            (batch, heads, lines, *_, columns), axis = node.attributes["sizes"], None
            width, rows = heads * columns, np.arange(batch * lines).reshape(batch, lines, 1)
            if node.attributes["out"] != (0, lines * width, columns, width):
                return None
        else:
            width, axis = (*shape, 0)[len(shape) - 1], None
            rows = np.arange(prod(shape[:-1])).reshape(*shape[:-1], 1)
        fits = width > 0 and width % 4 == 0 and rows.size <= _MOST and held(self._graph.types[name]) == "f32"
        return Moved(name, axis == 1, width, rows, axis, 0) if fits else None


def _moved_by(node: Node) -> tuple[str, ...]:
    if node.op not in MOVES:
        return ()
    return node.inputs[:1] if node.op == "take" else node.inputs


def _step(graph: Graph, node: Node, sources: list[Moved]) -> Moved | None:
    """Return the rows that a move makes; None where it takes them apart."""
    first, shape, before = sources[0], graph.shapes[node.output], graph.shapes[node.inputs[0]]
    if node.op == "reshape":
        return _reshaped(first, before, shape)
    moves = max(each.moves for each in sources) + 1
    along = len(before) - 1 if first.axis is None else first.axis
    if node.op == "take":
        found = _taken(graph, node, first, before)
        return None if found is None else replace(found, moves=moves)
    if first.rows.ndim != len(before) - (first.axis is not None):
        return None  # an attention's, whose heads lie side by side
    a = node.attributes
    if node.op == "transpose":
        return _turned(replace(first, moves=moves), a["perm"])
    if node.op == "pad":
        return _padded(replace(first, moves=moves), node, len(before))
    axis = a["axis"] - (first.axis is not None and a["axis"] > along)
    by = first.width if a["axis"] == along else 1
    if first.axis == a["axis"]:
        return None
    if node.op == "concat":
        return replace(first, rows=np.concatenate([each.rows for each in sources], axis), moves=moves)
    if a["start"] % by or a["stop"] % by:
        return None
    part = (slice(None),) * axis + (slice(a["start"] // by, a["stop"] // by),)
    return replace(first, rows=first.rows[part], moves=moves)


def _reshaped(moved: Moved, before: Shape, shape: Shape) -> Moved | None:
    if moved.axis is None or moved.axis == len(before) - 1:
        if not shape or shape[-1] % moved.width:
            return _reshaped(_along_last(moved, before), before, shape) if _is_single(moved, before) else None
        return replace(moved, rows=moved.rows.reshape((*shape[:-1], shape[-1] // moved.width)), axis=None)
    outer = prod(before[: moved.axis])
    for axis, extent in enumerate(shape):
        if extent == moved.width and prod(shape[:axis]) == outer:
            return replace(moved, rows=moved.rows.reshape((*shape[:axis], *shape[axis + 1 :])), axis=axis)
    return None


def _is_single(moved: Moved, before: Shape) -> bool:
    """Return whether the last axis is one row, which does not lie along an axis by itself yet."""
    return moved.axis is None and moved.rows.ndim == len(before) and before[-1] == moved.width


def _along_last(moved: Moved, before: Shape) -> Moved:
    return replace(moved, rows=moved.rows[..., 0], axis=len(before) - 1)


def _turned(moved: Moved, perm: tuple[int, ...]) -> Moved | None:
    last = len(perm) - 1
    if moved.axis is None and perm[-1] == last:
        return replace(moved, rows=moved.rows.transpose(perm))
    if moved.axis is None:
        if moved.rows.shape[-1] != 1:
            return None
        moved = replace(moved, rows=moved.rows[..., 0], axis=last)
    axis = moved.axis or 0
    order = [place - (place > axis) for place in perm if place != axis]
    found = replace(moved, rows=moved.rows.transpose(order), axis=perm.index(axis))
    return replace(found, rows=found.rows[..., None], axis=None) if found.axis == last else found


def _padded(moved: Moved, node: Node, axes: int) -> Moved | None:
    top, left, bottom, right = node.attributes["pads"]
    zeros = node.attributes["mode"] == "constant" and node.attributes["value"] == 0
    if axes != 4 or not zeros or moved.axis in (2, 3):
        return None
    by = moved.width if moved.axis is None else 1
    if left % by or right % by:
        return None
    around = [(0, 0)] * (moved.rows.ndim - 2) + [(top, bottom), (left // by, right // by)]
    return replace(moved, rows=np.pad(moved.rows, around, constant_values=-1))


def _taken(graph: Graph, node: Node, moved: Moved, before: Shape) -> Moved | None:
    shape, strides = node.attributes["shape"], node.attributes["strides"]
    parts = split_table(graph.constants[node.inputs[1]], shape)
    if moved.axis is None and (rows := _taken_rows(node, parts, moved.width)) is not None:
        return replace(moved, rows=np.where(rows < 0, -1, moved.flat[rows]))
    order = sorted((axis for axis, extent in enumerate(shape) if extent > 1), key=lambda axis: -strides[axis])
    extents = tuple(shape[axis] for axis in order)
    natural = tuple(prod(extents[k + 1 :]) for k in range(len(extents)))
    whole = all(np.array_equal(part, np.arange(len(part))) for part in parts) and prod(extents) == prod(before)
    if not whole or natural != tuple(strides[axis] for axis in order):
        return None
    apart = _reshaped(moved, before, extents)
    kept = [axis for axis, extent in enumerate(shape) if extent > 1]
    turned = None if apart is None else _turned(apart, tuple(order.index(axis) for axis in kept))
    return None if turned is None else _reshaped(turned, tuple(shape[axis] for axis in kept), shape)


def _taken_rows(node: Node, parts: list[npt.NDArray[np.float32]], width: int) -> Rows | None:
    """The rows that a `take` copies; None where it leaves them not whole."""
    shape, strides = node.attributes["shape"], node.attributes["strides"]
    *outer, last = (part.astype(np.int64) for part in parts)
    used = [stride for stride, part in zip(strides, outer, strict=False) if part.any()]
    is_whole = NOTHING not in last and bool(np.all(np.diff(last) == 1)) and strides[-1] == 1
    if not is_whole or any(number % width for number in (shape[-1], int(last[0]), *used)):
        return None
    if node.attributes["value"] != 0 and any(NOTHING in part for part in outer):
        return None
    found: Rows = last[::width] // width
    for part, stride in zip(reversed(outer), reversed(strides[:-1]), strict=True):
        place = (np.where(part < 0, 0, part) * (stride // width)).reshape(-1, *[1] * found.ndim)
        found = np.where((part.reshape(place.shape) < 0) | (found < 0), -1, place + found)
    return found
