"""Which rows of one tensor another one is made of, through reshapes, transpositions, slices, concats and pads.

A chain of such moves that leaves rows whole is one list of numbers: of each row of the result the row of the tensor
from which it comes, or -1 for a row of zeros. So a rolled picture that is cut into windows is one copy
(`compose_moves`), or none (`attend_windows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, prod

import numpy as np
import numpy.typing as npt

from kernels.ir.graph import Graph, Node
from kernels.ir.taking import NOTHING, split_table

Rows = npt.NDArray[np.int64]
MOVES = frozenset({"reshape", "transpose", "slice", "concat", "pad", "take"})
_MOST = 1 << 22
"""Rows that are listed at most."""


@dataclass(frozen=True)
class Moved:
    """A tensor made of rows of `root`, `unit` elements each; in the order of the tensor's elements."""

    root: str
    unit: int
    rows: Rows
    moves: int
    """How many of the operations between them copy something."""


def moved(graph: Graph, name: str, writers: Mapping[str, Node]) -> Moved | None:
    """How a tensor is made of the furthest one of which it has whole rows; None where it is not made by moves."""
    found = _Chain(graph, writers).root(name)
    if found is None or found[0] == name:
        return None
    root, unit = found
    if unit % 4 or prod(graph.shapes[name]) // unit > _MOST or prod(graph.shapes[root]) // unit > _MOST:
        return None
    places, moves = _Places(graph, writers, root, unit), set[str]()
    rows = places.of(name, moves)
    return Moved(root, unit, rows.reshape(-1), len(moves))


def taken_rows(graph: Graph, node: Node, unit: int) -> Rows | None:
    """The rows that a `take` copies; None where it leaves rows of so many elements not whole."""
    shape, strides = node.attributes["shape"], node.attributes["strides"]
    *outer, last = (part.astype(np.int64) for part in split_table(graph.constants[node.inputs[1]], shape))
    whole = NOTHING not in last and bool(np.all(np.diff(last) == 1)) and strides[-1] == 1
    numbers = (shape[-1], int(last[0]), *(stride for stride, part in zip(strides, outer, strict=False) if part.any()))
    if not whole or any(number % unit for number in numbers):
        return None
    found: Rows = last[::unit] // unit
    for part, stride in zip(reversed(outer), reversed(strides[:-1]), strict=True):
        place = np.where(part < 0, 0, part) * (stride // unit if part.any() else 0)
        lead = part.reshape(-1, *[1] * found.ndim)
        found = np.where((lead < 0) | (found < 0), -1, place.reshape(lead.shape) + found)
    return found


class _Chain:
    """The furthest tensor behind moves that leave rows whole, and how many elements such rows have."""

    def __init__(self, graph: Graph, writers: Mapping[str, Node]) -> None:
        self._graph, self._writers = graph, writers
        self._found: dict[str, tuple[str, int] | None] = {}

    def root(self, name: str) -> tuple[str, int] | None:
        """None for what has no rows."""
        if name not in self._found:
            self._found[name] = self._look(name)
        return self._found[name]

    def _look(self, name: str) -> tuple[str, int] | None:
        shape, node = self._graph.shapes[name], self._writers.get(name)
        own = (name, shape[-1]) if shape and name not in self._graph.constants else None
        if own is None or node is None or node.op not in MOVES:
            return own
        step = _step(self._graph, node)
        sources = {self.root(each) for each in node.inputs[: 1 if node.op == "take" else None]}
        if not step or len({each[0] for each in sources if each}) != 1 or None in sources:
            return own
        root = next(each[0] for each in sources if each)
        return root, gcd(step, shape[-1], *(each[1] for each in sources if each))


def _step(graph: Graph, node: Node) -> int:
    """Elements of a row that a move leaves whole; 0 where it takes rows apart."""
    a, last = node.attributes, len(graph.shapes[node.output]) - 1
    match node.op:
        case "transpose" if a["perm"][-1] != last:
            return 0
        case "slice" if a["axis"] == last:
            return gcd(a["start"], a["stop"])
        case "pad":
            _, left, _, right = a["pads"]
            zeros = a["mode"] == "constant" and a["value"] == 0
            return gcd(left, right) or graph.shapes[node.output][-1] if zeros and last == 3 else 0
        case "take":
            return _step_of_take(graph, node)
        case _:
            return graph.shapes[node.output][-1]


def _step_of_take(graph: Graph, node: Node) -> int:
    a = node.attributes
    parts = split_table(graph.constants[node.inputs[1]], a["shape"])
    empty = any(NOTHING in part for part in parts)
    used = [stride for stride, part in zip(a["strides"][:-1], parts, strict=False) if part.any()]
    step = gcd(a["shape"][-1], int(max(parts[-1][0], 0)), *used)
    return 0 if (empty and a["value"] != 0) or taken_rows(graph, node, step) is None else step


class _Places:
    """Numbers of the rows of a root that make up the tensors behind it."""

    def __init__(self, graph: Graph, writers: Mapping[str, Node], root: str, unit: int) -> None:
        self._graph, self._writers, self._root, self._unit = graph, writers, root, unit
        self._found: dict[str, Rows] = {}

    def of(self, name: str, moves: set[str]) -> Rows:
        """By the tensor's axes, the last one in rows; `moves` gets those who copy."""
        if name not in self._found:
            self._found[name] = self._of(name, moves)
        return self._found[name]

    def _of(self, name: str, moves: set[str]) -> Rows:
        shape = (*self._graph.shapes[name][:-1], self._graph.shapes[name][-1] // self._unit)
        if name == self._root:
            return np.arange(prod(shape)).reshape(shape)
        node = self._writers[name]
        a = node.attributes
        sources = [self.of(each, moves) for each in node.inputs[: 1 if node.op == "take" else None]]
        moves |= {name} if node.op != "reshape" else set()
        match node.op:
            case "transpose":
                return sources[0].transpose(a["perm"])
            case "slice":
                by = self._unit if a["axis"] == len(shape) - 1 else 1
                return sources[0][(slice(None),) * a["axis"] + (slice(a["start"] // by, a["stop"] // by),)]
            case "concat":
                return np.concatenate(sources, a["axis"])
            case "pad":
                top, left, bottom, right = a["pads"]
                around = ((0, 0), (0, 0), (top, bottom), (left // self._unit, right // self._unit))
                padded: Rows = np.pad(sources[0], around, constant_values=-1)
                return padded
            case "take":
                taken = taken_rows(self._graph, node, self._unit)
                assert taken is not None
                return np.asarray(np.where(taken < 0, -1, sources[0].reshape(-1)[taken]).reshape(shape), np.int64)
            case _:
                return sources[0].reshape(shape)
