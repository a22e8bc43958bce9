"""Channels that a network shuffles, as ShuffleNet's units do, stay where they were written.

A shuffle (reshape, transpose, reshape), and the concats and slices around it, only say which channels a tensor has and
in which order. A convolution may read channels in any order, with its weights in the same; so may what works channel by
channel, whose result is in that order then, too. So nothing moves but what a layer reads: it takes its channels in one
copy from all that was joined so far, in the order in which they lie there.

Each convolution writes its channels into their place in what is joined (`lower/aliases.py`); where these are no whole
stacks of four, it makes channels of zeros beside them, which nobody takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers, use_counts
from kernels.ir.taking import joined
from kernels.passes.rewrite import fresh, rebuilt

Order = Sequence[tuple[str, int]]
"""The channels of a tensor: each as a tensor that was written, and a channel of that."""
Shuffle = tuple[str, int, tuple[str, ...]]
"""Tensor that is shuffled, its groups, the tensors between it and the result."""

_BY_CHANNEL = frozenset({*ACTIVATIONS, "max_pool", "average_pool"})


def keep_shuffled(graph: Graph) -> Graph:
    """Replace shuffles of channels, and concats and slices beside them, by orders of weights and one copy a reader."""
    shuffles = _shuffles(graph)
    return _Writer(graph, shuffles).written() if shuffles else graph


def _shuffles(graph: Graph) -> dict[str, Shuffle]:
    """Find shuffles: tensors (N, C, h, w) whose channel i * groups + j is channel j * (C / groups) + i of another."""
    writers, counts = producers(graph), use_counts(graph)
    found: dict[str, Shuffle] = {}
    for last in graph.nodes:
        turn = writers.get(last.inputs[0]) if last.op == "reshape" else None
        first = writers.get(turn.inputs[0]) if turn is not None and turn.op == "transpose" else None
        if turn is None or first is None or first.op != "reshape" or counts[turn.output] + counts[first.output] > 2:
            continue
        shape, parted = graph.shapes[last.output], graph.shapes[first.output]
        groups = _swapped(shape, parted, turn.attributes["perm"])
        if graph.shapes[first.inputs[0]] == shape and groups:
            found[last.output] = first.inputs[0], groups, (first.output, turn.output)
    return found


def _swapped(shape: Sequence[int], parted: Sequence[int], perm: Sequence[int]) -> int:
    """Groups of channels where their two axes alone change places, else 0."""
    if len(shape) != 4 or len(parted) not in (3, 4):
        return 0
    n, c, h, w = shape
    groups = parted[-3]
    whole = n, groups, c // groups, h * w
    if len(parted) == 4:
        return groups if tuple(parted) == whole and tuple(perm) == (0, 2, 1, 3) else 0
    return groups if (1, *parted) == whole and tuple(perm) == (1, 0, 2) else 0


class _Writer:
    """Writes the new nodes. A tensor in `_orders` is written only as far as it is read."""

    def __init__(self, graph: Graph, shuffles: Mapping[str, Shuffle]) -> None:
        self._graph, self._shuffles = graph, shuffles
        self._between = {name for _, _, between in shuffles.values() for name in between}
        self._joins = {source for source, _, _ in shuffles.values()}
        self._parts = self._parts_of_shuffles()
        self._nodes: list[Node] = []
        self._shapes = dict(graph.shapes)
        self._constants: dict[str, Array] = {}
        self._orders: dict[str, Order] = {}
        self._chains: dict[str, list[str]] = {}
        """Tensor -> those that are joined with it, in the order in which they lie."""
        self._concats: dict[tuple[str, str], str] = {}
        self._taken: dict[tuple[str, tuple[int, ...]], str] = {}

    def _parts_of_shuffles(self) -> set[str]:
        """Tensors that are read only to be joined and shuffled."""
        return {
            name
            for name, nodes in self._graph.readers.items()
            if name not in self._graph.outputs and all(n.op == "concat" and n.output in self._joins for n in nodes)
        }

    def written(self) -> Graph:
        """The whole graph."""
        for node in self._graph.nodes:
            if node.output not in self._between:
                self._visit(node)
        return rebuilt(self._graph, self._nodes, constants=self._constants, shapes=self._shapes)

    def _visit(self, node: Node) -> None:
        order = self._order_of(node)
        if order:
            self._orders[node.output] = order
            if node.output in self._graph.outputs:
                same = {"shape": self._shapes[node.output]}
                self._nodes.append(Node(node.name, "reshape", (self._exact(node.output),), node.outputs, same))
        elif node.inputs and node.inputs[0] in self._orders and self._bears_any_order(node):
            self._in_any_order(node)
        else:
            self._nodes.append(self._padded(replace(node, inputs=tuple(map(self._exact, node.inputs)))))

    def _order_of(self, node: Node) -> Order:
        """The channels of what a node joins, cuts or shuffles, where a shuffle is behind or before it."""
        shape = self._shapes[node.output]
        if node.output in self._shuffles:
            source, groups, _ = self._shuffles[node.output]
            order = self._channels(source)
            size = len(order) // groups
            return [order[group * size + i] for i in range(size) for group in range(groups)]
        if len(shape) != 4 or node.op not in ("concat", "slice") or node.attributes["axis"] != 1:
            return []
        if node.op == "slice" and node.inputs[0] in self._orders:
            return self._orders[node.inputs[0]][node.attributes["start"] : node.attributes["stop"]]
        if node.op == "concat" and (node.output in self._joins or set(node.inputs) & set(self._orders)):
            return [each for name in node.inputs for each in self._channels(name)]
        return []

    def _channels(self, name: str) -> Order:
        known = self._orders.get(name)
        return known if known is not None else [(name, c) for c in range(self._graph.shapes[name][1])]

    def _padded(self, node: Node) -> Node:
        """A convolution whose channels are joined and shuffled: with channels of zeros up to whole stacks."""
        if node.output not in self._parts or len(node.inputs) > 3:
            return node
        if not self._is_conv(node) or node.attributes["groups"] != 1:
            return node
        n, k, h, w = self._shapes[node.output]
        if k % 4 == 0:
            return node
        self._shapes[node.output] = n, k + -k % 4, h, w
        constants = [self._constant(name, "padded", _with_zeros(self._array(name))) for name in node.inputs[1:] if name]
        return replace(node, inputs=(node.inputs[0], *constants))

    def _bears_any_order(self, node: Node) -> bool:
        """Return whether a layer can read its channels in any order; a layer by channel must then write them so."""
        if self._is_conv(node) and node.attributes["groups"] == 1:
            return True
        return self._is_by_channel(node) and node.output not in self._graph.outputs

    def _is_by_channel(self, node: Node) -> bool:
        if node.op in _BY_CHANNEL or not self._is_conv(node) or len(node.inputs) > 3:
            return node.op in _BY_CHANNEL
        channels, filters = self._shapes[node.inputs[0]][1], self._shapes[node.output][1]
        return bool(node.attributes["groups"] == channels == filters)

    def _is_conv(self, node: Node) -> bool:
        """Return whether it is a convolution whose weights and bias are constants."""
        constants = {*self._graph.constants, *self._constants, ""}
        return node.op == "conv" and set(node.inputs[1:3]) <= constants

    def _in_any_order(self, node: Node) -> None:
        """A layer that reads its channels as they lie, with its weights in their order."""
        order = self._orders[node.inputs[0]]
        source, at = self._as_they_lie(order)
        by_channel = self._is_by_channel(node)
        weights = (*node.inputs[1:3], *map(self._exact, node.inputs[3:]))
        if at != sorted(at):
            if by_channel:
                weights = tuple(name and self._constant(name, "ordered", self._array(name)[at]) for name in weights)
            else:
                weight = self._constant(weights[0], "ordered", self._array(weights[0])[:, at])
                weights = (weight, *weights[1:])
        new = replace(node, inputs=(source, *weights))
        if by_channel and at != sorted(at):
            new = replace(new, outputs=(self._fresh(f"{node.output}.ordered"),))
            self._shapes[new.output] = self._shapes[node.output]
            places = {channel: place for place, channel in enumerate(at)}
            self._orders[node.output] = [(new.output, places[c]) for c in range(len(at))]
        self._nodes.append(new if by_channel else self._padded(new))

    def _as_they_lie(self, order: Order) -> tuple[str, list[int]]:
        """A tensor of these channels, in the order in which they lie, and which of them each is."""
        whole, first = self._joined([name for name, _ in order])
        lies = [first[name] + channel for name, channel in order]
        at = sorted(range(len(order)), key=lambda index: lies[index])
        return self._take(whole, tuple(lies[index] for index in at)), at

    def _exact(self, name: str) -> str:
        """A tensor of the channels in the order in which the network has them."""
        if name not in self._orders:
            return name
        order = self._orders[name]
        whole, first = self._joined([source for source, _ in order])
        return self._take(whole, tuple(first[source] + channel for source, channel in order))

    def _joined(self, names: Sequence[str]) -> tuple[str, dict[str, int]]:
        """The tensor in which these lie, and the first channel of each. Each is joined once: later ones behind."""
        names = list(dict.fromkeys(names))
        chain = next((self._chains[name] for name in names if name in self._chains), [names[0]])
        if any(self._chains.get(name, chain) is not chain for name in names):
            chain = [*names]  # of two chains: copied
        for name in names:
            if name not in chain:
                chain.append(name)
            self._chains.setdefault(name, chain)
        used = chain[: 1 + max(chain.index(name) for name in names)]
        first, at = {}, 0
        for name in used:
            first[name] = at
            at += self._shapes[name][1]
        return self._concat(used), first

    def _concat(self, names: Sequence[str]) -> str:
        """One more at a time: what was joined before is a part of it, and lies where it lay."""
        whole = names[0]
        for part in names[1:]:
            if (whole, part) not in self._concats:
                name = self._concats[whole, part] = self._fresh(f"{part}.joined")
                n, _, h, w = self._shapes[part]
                self._shapes[name] = n, self._shapes[whole][1] + self._shapes[part][1], h, w
                self._nodes.append(Node(name, "concat", (whole, part), (name,), {"axis": 1}))
            whole = self._concats[whole, part]
        return whole

    def _take(self, whole: str, channels: tuple[int, ...]) -> str:
        n, c, h, w = self._shapes[whole]
        if channels == tuple(range(c)):
            return whole
        if (whole, channels) not in self._taken:
            name = self._taken[whole, channels] = self._fresh(f"{whole}.taken")
            shape = self._shapes[name] = n, len(channels), h, w
            table = joined((range(n), channels, range(h), range(w)))
            attributes = {"shape": shape, "strides": (c * h * w, h * w, w, 1), "value": 0.0}
            inputs = whole, self._constant(name, "table", table)
            self._nodes.append(Node(name, "take", inputs, (name,), attributes))
        return self._taken[whole, channels]

    def _fresh(self, base: str) -> str:
        return fresh(replace(self._graph, shapes=self._shapes), base)

    def _array(self, name: str) -> Array:
        return self._constants[name] if name in self._constants else self._graph.constants[name]

    def _constant(self, name: str, word: str, content: Array) -> str:
        new = self._fresh(f"{name}.{word}")
        self._constants[new] = np.ascontiguousarray(content)
        self._shapes[new] = content.shape
        return new


def _with_zeros(array: Array) -> Array:
    return np.pad(array, ((0, -len(array) % 4), *[(0, 0)] * (array.ndim - 1)))
