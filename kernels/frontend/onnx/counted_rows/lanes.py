"""Joins what a model computes in the same way of many slices of a tensor: it is computed of all of them at once.

Exporters write loops out: a detector sorts the scores of each of 90 classes by nodes of its own. Such nodes are
followed side by side from the slices on, as long as every lane has the same ones and reads the same besides (so that
nothing can wait for itself). Those of the first lane then get an axis more, with an element for each lane
(`every_row.py`). Only what sorts is joined: other networks stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from math import prod

import numpy as np

from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.steps import MAX_PLACES, Steps
from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Node

from .every_row import EveryRow

FEWEST = 4
"""Lanes that are worth it."""
_HALF_PLACES = 2048
"""Places that halves hold: what has no more keeps to them."""
_BY_ROWS = frozenset(
    {*ACTIVATIONS, "concat", "gather", "map", "reduce", "reshape", "slice", "softmax", "sort", "take", "transpose"}
)

Lanes = dict[str, tuple[str, ...]]
"""Tensor of the first lane -> that of every lane."""
Readers = dict[str, list[tuple[int, Node]]]
"""Tensor -> the nodes that read it, with their places."""


def join_lanes(to: Context, outputs: Iterable[str]) -> None:
    """Rewrite the nodes; what is read of a lane, an output or the model's own node's keeps its name."""
    readers = _readers(to.nodes)
    for slices in _slices(to.nodes):
        following = _Following(to, slices, readers)
        if any(node.op == "sort" for node in following.body) and following.fits():
            _join(to, slices, following, {*outputs, *to.reserved})
            readers = _readers(to.nodes)


def _readers(nodes: Sequence[Node]) -> Readers:
    found: Readers = defaultdict(list)
    for place, node in enumerate(nodes):
        for name in dict.fromkeys(node.inputs):
            found[name].append((place, node))
    return found


def _slices(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """Equal ones of a tensor that lie one behind the other, as many as there are."""
    known: dict[tuple[str, int, int], dict[int, Node]] = defaultdict(dict)
    for node in nodes:
        if node.op == "slice":
            a = node.attributes
            known[node.inputs[0], a["axis"], a["stop"] - a["start"]].setdefault(a["start"], node)
    for (_, _, width), by_start in known.items():
        run: list[Node] = []
        for start in sorted(by_start):
            if run and run[-1].attributes["start"] + width != start:
                if len(run) >= FEWEST:
                    yield run
                run = []
            run.append(by_start[start])
        if len(run) >= FEWEST:
            yield run


class _Following:
    """`body`: nodes of the first lane of which each other lane has its own; `lanes`: their results, and the slices."""

    def __init__(self, to: Context, slices: Sequence[Node], readers: Readers) -> None:
        self._to, self._used, self._readers = to, set[str](), readers
        self.count = len(slices)
        self.lanes: Lanes = {slices[0].output: tuple(node.output for node in slices)}
        self.body: list[Node] = []
        ahead = dict(readers.get(slices[0].output, ()))
        places = sorted(ahead)
        while places:  # looks at what reads the lane alone: there may be as many runs of slices as nodes
            node = ahead[heappop(places)]
            if node.op in _BY_ROWS:
                self._follow(node)
            for place, reader in readers.get(node.output, ()) if node.output in self.lanes else ():
                if place not in ahead:
                    ahead[place] = reader
                    heappush(places, place)

    def _follow(self, node: Node) -> None:
        found = [node.output]
        for lane in range(1, self.count):
            own = self._counterpart(node, lane)
            if own is None:
                return
            found.append(own)
        self._used.update(found)
        self.body.append(node)
        self.lanes[node.output] = tuple(found)

    def _counterpart(self, node: Node, lane: int) -> str | None:
        first = next(name for name in node.inputs if name in self.lanes)
        for _, other in self._readers.get(self.lanes[first][lane], ()):
            if other.output in self._used or (other.op, other.attributes) != (node.op, node.attributes):
                continue
            if len(other.inputs) == len(node.inputs) and all(
                self.lanes[a][lane] == b if a in self.lanes else a == b or self._is_same_constant(a, b)
                for a, b in zip(node.inputs, other.inputs, strict=True)
            ):
                return other.output
        return None

    def _is_same_constant(self, a: str, b: str) -> bool:
        weights = self._to.weights
        return a in weights and b in weights and weights[a].shape == weights[b].shape and np.array_equal(
            weights[a], weights[b]
        )  # fmt: skip

    def fits(self) -> bool:
        """Return whether no tensor of all lanes is too large.

        Places of all lanes must be no more than halves hold, if those of one lane are not."""
        shapes = self._to.shapes
        gathers = [node for node in self.body if node.op == "gather" and self.lanes.keys() >= {*node.inputs}]
        places = [self.count * shapes[node.inputs[0]][node.attributes["axis"]] for node in gathers]
        elements = [self.count * prod(shapes[name]) for name in self.lanes]
        allowed = _HALF_PLACES if self._to.places <= _HALF_PLACES else MAX_PLACES
        return max(elements) <= MAX_PLACES and max(places, default=0) <= allowed


def _join(to: Context, slices: Sequence[Node], following: _Following, named: set[str]) -> None:
    lanes = following.lanes
    gone = {name for node in following.body for name in lanes[node.output]}
    kept = [node for node in to.nodes if node.output not in gone]
    to.nodes.clear()
    s = Steps(_as_onnx(slices[0], to), to)
    every = EveryRow(s, following.count, {slices[0].output: _side_by_side(s, slices)})
    for node in following.body:
        s.node = _as_onnx(node, to)
        every.extend([node])
    by_first = {names[0]: names for names in lanes.values()}
    rest = []
    for node in kept:
        if node.op == "concat" and by_first.get(node.inputs[0]) == node.inputs:
            to.nodes.append(s.alias(_joined(s, every.made[node.inputs[0]], node), node.output))
        else:
            rest.append(node)
    read = {name for node in rest for name in node.inputs} | named
    for first, names in lanes.items():
        for lane, name in enumerate(names):
            if name in read and first != slices[0].output:
                own = s.slice(every.made[first], 0, lane, lane + 1)
                to.nodes.append(s.alias(s.reshape(own, s.shape(name)), name))
    to.nodes[:] = _ordered([*rest, *to.nodes])


def _as_onnx(node: Node, to: Context) -> OnnxNode:
    return OnnxNode(node.name, node.op, to.opset, node.inputs, node.outputs, {})


def _side_by_side(s: Steps, slices: Sequence[Node]) -> str:
    """Return the tensor that the slices read, (lanes, ...)."""
    source, a, shape = slices[0].inputs[0], slices[0].attributes, s.shape(slices[0].output)
    whole = s.slice(source, a["axis"], a["start"], slices[-1].attributes["stop"])
    before, width, behind = prod(shape[: a["axis"]]), shape[a["axis"]], prod(shape[a["axis"] + 1 :])
    apart = s.transpose(s.reshape(whole, (before, len(slices), width, behind)), (1, 0, 2, 3))
    return s.reshape(apart, (len(slices), *shape))


def _joined(s: Steps, every: str, concat: Node) -> str:
    """The lanes one behind the other along an axis of theirs."""
    axis, rank = concat.attributes["axis"], len(s.shape(concat.output))
    perm = (*range(1, axis + 1), 0, *range(axis + 1, rank + 1))
    return s.reshape(s.transpose(every, perm), s.shape(concat.output))


def _ordered(nodes: Sequence[Node]) -> list[Node]:
    """Each behind those that it reads, otherwise as they were."""
    writers = {name: index for index, node in enumerate(nodes) for name in node.outputs}
    reads = [{writers[name] for name in node.inputs if name in writers} for node in nodes]
    readers: dict[int, list[int]] = defaultdict(list)
    for index, sources in enumerate(reads):
        for source in sources:
            readers[source].append(index)
    waits = [len(sources) for sources in reads]
    ready = [index for index, count in enumerate(waits) if not count]
    heapify(ready)
    found = []
    while ready:
        index = heappop(ready)
        found.append(nodes[index])
        for reader in readers[index]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, reader)
    return found
