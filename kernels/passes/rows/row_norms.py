"""Layer, RMS and L2 normalisations as one node, from whatever steps an exporter wrote.

`row_norm`: inputs x, scale, shift. Of each row of the last axis it is
(x - mean) / max(sqrt(mean of (x - mean) ** 2 + epsilon), least) * scale + shift.
Attributes: epsilon; `centred`, False where 0 stands for the mean (RMS and L2 norms), else absent; `least`, where it is
not 0. Several last axes are one row, between reshapes. Of the pixels of an image, in each channel or in groups of
channels that a reshape makes, it is an `instance_norm`, which reads stacks of channels.

Where others read a part of the steps, that part stays beside the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from kernels.ir.activations import expression_of
from kernels.ir.expressions import Expression, operands_of, with_operands
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers
from kernels.ir.shapes import Shape
from kernels.passes.rewrite import fresh, prune, rebuilt

from .roots import Axes, distance_of, inverse_root
from .unfolded_norms import is_of_row, unfolded

_LONGEST = 1 << 14
"""Elements of a row of several axes: of longer ones there are few, and steps share them out among all cores."""


@dataclass(frozen=True)
class Norm:
    """x, normalised over these axes and times a factor."""

    x: str
    axes: Axes
    factor: float
    epsilon: float
    least: float = 0.0
    centred: bool = True

    @property
    def attributes(self) -> dict[str, float | bool]:
        """The attributes of a row_norm."""
        given: dict[str, float | bool] = {"epsilon": self.epsilon}
        given |= {} if self.centred else {"centred": False}
        return given | ({"least": self.least} if self.least else {})


def fuse_row_norms(graph: Graph, *, multiple: int = 4) -> Graph:
    """The steps of a normalisation -> row_norm, where rows have a multiple of so many elements, or instance_norm."""
    return _Norms(graph, multiple).fused()


def norm_of(graph: Graph, node: Node, writers: Mapping[str, Node]) -> Norm | None:
    """Return the normalisation of a product with an inverse root, or of a quotient by a root."""
    for name, divisor, expression in _quotients(node):
        if graph.shapes[name] == graph.shapes[node.output]:
            distance = distance_of(graph, name, writers)
            found = inverse_root(graph, divisor, expression, distance, writers)
            if found is not None:
                power, axes = found
                centred = distance.axes is not None
                return Norm(distance.x, axes, power.scale**-0.5, power.epsilon, power.floor**0.5, centred)
    return None


def _quotients(node: Node) -> list[tuple[str, str, Expression]]:
    """Read a node as products of an operand and an expression in `a` of another one: both, and this, each way."""
    match expression_of(node) if len(node.inputs) == 2 else None:
        case ("mul", left, right):
            ways = [(left, right), (right, left)]
        case ("div", left, right):
            ways = [(left, ("div", 1.0, right))]
        case _:
            return []
    by = dict(zip("ab", node.inputs, strict=True))
    return [
        (by[operand], by[other], with_operands(rest, {other: "a"}))
        for operand, rest in ways
        if isinstance(operand, str)
        for other in set(operands_of(rest)) - {operand}
        if set(operands_of(rest)) == {other}
    ]


class _Norms:
    """One walk over a graph."""

    def __init__(self, graph: Graph, multiple: int) -> None:
        self._graph, self._multiple = graph, multiple
        self._writers, self._readers = producers(graph), graph.readers
        self._found: dict[str, list[Node]] = {}
        self._constants: dict[str, Array] = {}
        self._shapes: dict[str, Shape] = {}

    def fused(self) -> Graph:
        for node in self._graph.nodes:
            if node.op == "instance_norm":
                self._regroup(node)
                continue
            norm = norm_of(self._graph, node, self._writers)
            if norm is not None:
                self._replace(node, norm)
                continue
            whole = unfolded(self._graph, node, self._writers)
            if whole is not None and self._graph.shapes[whole.x][-1] % self._multiple == 0:
                rank = len(self._graph.shapes[whole.x])
                norm = Norm(whole.x, (rank - 1, rank), 1.0, whole.epsilon)
                self._write(node, norm, [whole.scale, whole.shift])
        nodes = [each for node in self._graph.nodes for each in self._found.get(node.output, [node])]
        return prune(rebuilt(self._graph, nodes, constants=self._constants, shapes=self._shapes))

    def _replace(self, node: Node, norm: Norm) -> None:
        shape, (start, stop) = self._graph.shapes[norm.x], norm.axes
        if stop < len(shape):
            return
        last, vectors = self._with_constants(node, norm)
        image, groups = self._image(norm.x, start)
        if groups and norm.centred and not norm.least and all(np.ptp(each) == 0 for each in vectors):
            vectors = [np.full(self._graph.shapes[image][1], each[0]) for each in vectors]
            self._write_groups(last, image, groups, norm.epsilon, vectors)
            return
        count = prod(shape[start:])
        if (start == len(shape) - 1 or count <= _LONGEST) and count % self._multiple == 0:
            self._write(last, norm, vectors)

    def _regroup(self, node: Node) -> None:
        """Let an instance normalisation of what a reshape makes of an image read the image, as PyTorch's GroupNorm."""
        x, *names = node.inputs
        image, groups = self._image(x, 2, least=3)
        vectors = [self._graph.constants[name] for name in names if name in self._graph.constants]
        if image != x and groups == self._graph.shapes[x][1] and "groups" not in node.attributes and len(vectors) == 2:
            vectors = [np.repeat(vector, self._graph.shapes[image][1] // groups) for vector in vectors]
            self._write_groups(node, image, groups, node.attributes["epsilon"], vectors)

    def _image(self, x: str, start: int, *, least: int = 4) -> tuple[str, int]:
        """The image, of so many axes at least, that a tensor is or reshapes, and how many groups of its channels are
        the tensor's rows from axis `start` on; 0: they are none."""
        node, shape = self._writers.get(x), self._graph.shapes[x]
        rows = prod(shape[:start])
        for image in (node.inputs[0] if node is not None and node.op == "reshape" else x, x):
            found, pixels = self._graph.shapes[image], self._graph.shapes[image][2:]
            if len(found) >= least and rows % found[0] == 0 and found[1] % (groups := rows // found[0]) == 0:
                is_row = start != 2 and (prod(pixels) == 1 or (groups == found[1] and 1 in pixels))
                return image, 0 if is_row else groups
        return x, 0

    def _write_groups(self, node: Node, image: str, groups: int, epsilon: float, vectors: list[Array]) -> None:
        """The normalisation of an image in the place of a node; scale and shift of each channel."""
        graph, shape = self._graph, self._graph.shapes[image]
        names = [fresh(graph, f"{node.output}.{word}") for word in ("picture", "normalised", "scale", "shift")]
        self._constants |= {name: v.astype(np.float32) for name, v in zip(names[2:], vectors, strict=True)}
        picture = shape if len(shape) == 4 else (*shape[:2], 1, prod(shape[2:]))
        self._shapes |= dict.fromkeys(names[:2], picture)
        attributes = {"epsilon": epsilon} | ({"groups": groups} if groups < shape[1] else {})
        self._found[node.output] = [
            Node(node.name, "reshape", (image,), (names[0],), {"shape": picture}),
            Node(node.name, "instance_norm", (names[0], *names[2:]), (names[1],), attributes),
            Node(node.name, "reshape", (names[1],), node.outputs, {"shape": graph.shapes[node.output]}),
        ]

    def _with_constants(self, node: Node, norm: Norm) -> tuple[Node, list[Array]]:
        """The last of the nodes behind a normalisation that multiply by constants and add such; scale and shift."""
        shape, found = self._graph.shapes[node.output], list[Array]()
        row = shape[norm.axes[0] :]
        for function, usual in (("mul", norm.factor), ("add", 0.0)):
            vector = np.full(1, usual)
            behind = [] if node.output in self._graph.outputs else self._readers.get(node.output, [])
            if len(behind) == 1 and expression_of(behind[0]) == (function, "a", "b"):
                given = next((self._graph.constants[x] for x in behind[0].inputs if x in self._graph.constants), None)
                if given is not None and is_of_row(given, row) and self._graph.shapes[behind[0].output] == shape:
                    vector, node = given.reshape(-1) * (vector if function == "mul" else 1), behind[0]
            found.append(vector)
        return node, found

    def _write(self, node: Node, norm: Norm, vectors: list[Array]) -> None:
        """The normalisation in the place of a node whose result it gives."""
        graph, shape = self._graph, self._graph.shapes[norm.x]
        names = [fresh(graph, f"{node.output}.{word}") for word in ("scale", "shift")]
        whole = [np.broadcast_to(vector, prod(shape[norm.axes[0] :])) for vector in vectors]
        self._constants |= {name: v.astype(np.float32) for name, v in zip(names, whole, strict=True)}
        if norm.axes[0] == len(shape) - 1:
            self._found[node.output] = [Node(node.name, "row_norm", (norm.x, *names), node.outputs, norm.attributes)]
            return
        before, after = (fresh(graph, f"{node.output}.{word}") for word in ("rows", "normalised"))
        rows = (prod(shape[: norm.axes[0]]), prod(shape[norm.axes[0] :]))
        self._shapes |= {before: rows, after: rows}
        self._found[node.output] = [
            Node(node.name, "reshape", (norm.x,), (before,), {"shape": rows}),
            Node(node.name, "row_norm", (before, *names), (after,), norm.attributes),
            Node(node.name, "reshape", (after,), node.outputs, {"shape": shape}),
        ]
