"""Tensors in parts by channels: concats that nobody writes, and inputs that no single buffer could hold (study M).

A convolution over parts becomes one convolution a part, with the weights split by input channel; each adds to the sum
of those before it. What works channel by channel (pooling, padding, resizing, normalisation, element by element) works
part by part. Anything else reads the parts joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from kernels.errors import TooManyParts, checkpoint
from kernels.ir.activations import ACTIVATIONS
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import rebuilt

Range = tuple[int, int]
"""Channels from the first up to, not including, the second."""

BY_CHANNEL = frozenset(
    {
        *ACTIVATIONS, "max_pool", "average_pool", "global_average_pool", "pad", "resize", "instance_norm", "affine",
    }
)  # fmt: skip
"""Operations each of whose output channels depends on the same channel of the input only."""


def packed_elements(shape: Shape) -> int:
    """Elements of a tensor (N, C, ...) in stacks of four channels; one of fewer dimensions is a row."""
    n, c, *rest = (1,) * (2 - len(shape)) + shape
    total = n * -(-c // 4) * 4
    for extent in rest:
        total *= extent
    return total


MOST_PARTS = 4096
"""Nodes that a graph may have beyond its own: a layer over parts of parts has as many as their product."""


def split_channels(graph: Graph, *, concats: bool, largest: int = 0) -> Graph:
    """No concat of channels where `concats`, and no activation (N, C, h, w) above `largest` elements (0: any size).

    The graph's own inputs and outputs stay whole, and so do operands of operations that need them whole. Raises
    TooManyParts where that takes more than MOST_PARTS nodes beyond the graph's own.
    """
    splitter = _Splitter(graph, concats, largest)
    for node in graph.nodes:
        splitter.visit(node)
    return rebuilt(graph, splitter.nodes, constants=splitter.constants, shapes=splitter.shapes)


class _Splitter:
    """Writes the new nodes; `parts` has the tensors that exist in parts only."""

    def __init__(self, graph: Graph, concats: bool, largest: int) -> None:
        self._graph, self._concats, self._largest = graph, concats, largest
        self.nodes: list[Node] = []
        self.shapes = dict(graph.shapes)
        self.constants: dict[str, Array] = {}
        self._parts: dict[str, tuple[str, ...]] = {}
        self._written: set[str] = set()

    def visit(self, node: Node) -> None:
        """Write one node of the graph."""
        is_image = len(self.shapes[node.output]) == 4
        if is_image and node.op == "concat" and node.attributes["axis"] == 1 and self._removes(node):
            self._finish(node, [part for name in node.inputs for part in self._parts.get(name, (name,))])
        elif is_image and node.op == "conv" and node.attributes["groups"] == 1:
            self._conv(node)
        elif is_image and node.op in BY_CHANNEL and "groups" not in node.attributes:
            self._by_channel(node, self._cuts(node.output, node.inputs[:1]))
        elif is_image and node.op in ("add", "mul", "map") and self._is_uniform(node):
            self._by_channel(node, self._cuts(node.output, node.inputs))
        else:
            self._emit(replace(node, inputs=tuple(map(self._whole, node.inputs))))

    def _removes(self, concat: Node) -> bool:
        return self._concats or self._too_large(self.shapes[concat.output])

    def _too_large(self, shape: Shape) -> bool:
        return bool(self._largest) and packed_elements(shape) > self._largest

    def _is_uniform(self, node: Node) -> bool:
        """Return whether all operands are activations of the result's shape."""
        alike = all(self.shapes[name] == self.shapes[node.output] for name in node.inputs)
        return alike and not set(node.inputs) & set(self._graph.constants)

    def _conv(self, node: Node) -> None:
        """A chain of sums over the input's parts, for each part of the output."""
        weight = self._graph.constants.get(node.inputs[1])
        source, residual = node.inputs[0], node.inputs[3] if len(node.inputs) > 3 else ""
        ins = self._bounds(source)
        outs = self._cuts(node.output, [residual] if residual else [])
        if weight is None or (len(ins) == len(outs) == 1):
            self._emit(replace(node, inputs=tuple(map(self._whole, node.inputs))))
            return
        bias = node.inputs[2] if len(node.inputs) > 2 else ""
        ends = []
        for k in outs:
            total = self._piece(residual, k) if residual else ""
            for index, c in enumerate(ins):
                is_last = c == ins[-1]
                name = self._name(node.output, k, outs) if is_last else f"{node.output}.{k[0]}.sum{index}"
                filters = self._slice(node.inputs[1], weight[k[0] : k[1], c[0] : c[1]], f"{k[0]}.{c[0]}")
                start = self._slice(bias, self._graph.constants[bias][k[0] : k[1]], f"{k[0]}") if bias else ""
                operands = [self._piece(source, c), filters, start if index == 0 else "", total]
                while not operands[-1]:
                    operands.pop()
                attributes = {key: a for key, a in node.attributes.items() if is_last or key != "activation"}
                part = replace(
                    node, name=f"{node.name}.{k[0]}.{c[0]}", inputs=tuple(operands), outputs=(name,),
                    attributes=attributes,
                )  # fmt: skip
                total = self._emit(part, channels=k[1] - k[0], like=node.output)
            ends.append(total)
        self._finish(node, ends)

    def _by_channel(self, node: Node, cuts: Sequence[Range]) -> None:
        """The same operation once a part."""
        if len(cuts) == 1:
            self._emit(replace(node, inputs=tuple(map(self._whole, node.inputs))))
            return
        outputs = []
        for cut in cuts:
            inputs = tuple(
                self._slice(name, self._graph.constants[name][cut[0] : cut[1]], f"{cut[0]}")
                if name in self._graph.constants
                else self._piece(name, cut)
                for name in node.inputs
            )
            part = replace(
                node, name=f"{node.name}.{cut[0]}", inputs=inputs, outputs=(self._name(node.output, cut, cuts),)
            )
            outputs.append(self._emit(part, channels=cut[1] - cut[0], like=node.output))
        self._finish(node, outputs)

    def _finish(self, node: Node, parts: Sequence[str]) -> None:
        if list(parts) != [node.output]:
            self._parts[node.output] = tuple(parts)
            if node.output in self._graph.outputs:
                self._whole(node.output)

    def _emit(self, node: Node, *, channels: int = 0, like: str = "") -> str:
        """Write a node; `channels` of a tensor otherwise shaped `like` another, where it is a part."""
        if channels:
            n, _, *rest = self.shapes[like]
            self.shapes[node.output] = (n, channels, *rest)
        checkpoint()
        self.nodes.append(node)
        if len(self.nodes) > len(self._graph.nodes) + MOST_PARTS:
            raise TooManyParts(f"tensors of at most {self._largest} elements take more than {MOST_PARTS} further steps")
        return node.output

    def _whole(self, name: str) -> str:
        """The tensor itself; joined first where it exists in parts only."""
        if name in self._parts and name not in self._written:
            self._written.add(name)
            self._emit(Node(name, "concat", self._parts[name], (name,), {"axis": 1}))
        return name

    def _bounds(self, name: str) -> list[Range]:
        """Channels of each part."""
        ends = [0]
        for part in self._parts.get(name, (name,)):
            ends.append(ends[-1] + self.shapes[part][1])
        return list(pairwise(ends))

    def _cuts(self, output: str, operands: Iterable[str]) -> list[Range]:
        """Parts of a result: where an operand has a boundary, and small enough."""
        places = {end for name in operands for cut in self._bounds(name) for end in cut} | {0, self.shapes[output][1]}
        return [small for cut in pairwise(sorted(places)) for small in self._small(output, cut)]

    def _small(self, output: str, cut: Range) -> list[Range]:
        """A range of channels in equal parts of whole stacks, none above the largest."""
        n, _, *rest = self.shapes[output]
        if not self._too_large((n, cut[1] - cut[0], *rest)):
            return [cut]
        stacks = -(-(cut[1] - cut[0]) // 4)
        most = max(1, self._largest // packed_elements((n, 4, *rest)))
        count = -(-stacks // most)
        ends = [cut[0] + 4 * (stacks * i // count) for i in range(count)]
        return list(pairwise([*ends, cut[1]]))

    def _piece(self, name: str, cut: Range) -> str:
        """Channels of a tensor that lie in one of its parts."""
        for part, (first, end) in zip(self._parts.get(name, (name,)), self._bounds(name), strict=True):
            if (first, end) == cut:
                return part
            if first <= cut[0] and cut[1] <= end:
                return self._taken(part, (cut[0] - first, cut[1] - first))
        raise AssertionError(f"{name}: channels {cut} lie in no single part")

    def _taken(self, part: str, cut: Range) -> str:
        name = f"{part}[{cut[0]}:{cut[1]}]"
        if name not in self.shapes:
            self._emit(
                Node(name, "slice", (part,), (name,), {"axis": 1, "start": cut[0], "stop": cut[1]}),
                channels=cut[1] - cut[0], like=part,
            )  # fmt: skip
        return name

    def _slice(self, name: str, content: Array, words: str) -> str:
        """A part of a constant, under a name of its own."""
        part = f"{name}.{words}"
        self.constants[part] = content
        return part

    def _name(self, output: str, cut: Range, cuts: Sequence[Range]) -> str:
        return output if len(cuts) == 1 else f"{output}.{cut[0]}"
