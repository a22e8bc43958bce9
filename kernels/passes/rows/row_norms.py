"""Layer, RMS and L2 normalisations as one node, from whatever steps an exporter wrote.

`row_norm`: inputs x, scale, shift. Of each row of the last axis it is
(x - mean) / max(sqrt(mean of (x - mean) ** 2 + epsilon), least) * scale + shift.
Attributes: epsilon; `centred`, False where 0 stands for the mean (RMS and L2 norms), else absent; `least`, where it is
not 0. Several last axes are one row, between reshapes. Of the pixels of an image it is an `instance_norm`, which reads
stacks of channels.

Where others read a part of the steps, that part stays beside the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from kernels.ir.expressions import Expression, operands_of, with_operands
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers, readers
from kernels.ir.shapes import Shape
from kernels.passes.fuse_maps import expression_of
from kernels.passes.prune import prune
from kernels.passes.rewrite import fresh, rebuilt

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
        self._writers, self._readers = producers(graph), readers(graph)
        self._found: dict[str, list[Node]] = {}
        self._constants: dict[str, Array] = {}
        self._shapes: dict[str, Shape] = {}

    def fused(self) -> Graph:
        for node in self._graph.nodes:
            norm = norm_of(self._graph, node, self._writers)
            if norm is not None:
                self._replace(node, norm)
                continue
            whole = unfolded(self._graph, node, self._writers)
            if whole is not None and self._graph.shapes[whole.x][-1] % self._multiple == 0:
                rank = len(self._graph.shapes[whole.x])
                norm = Norm(whole.x, (rank - 1, rank), 1.0, whole.epsilon)
                self._write(node, "row_norm", norm, [whole.scale, whole.shift])
        nodes = [each for node in self._graph.nodes for each in self._found.get(node.output, [node])]
        return prune(rebuilt(self._graph, nodes, constants=self._constants, shapes=self._shapes))

    def _replace(self, node: Node, norm: Norm) -> None:
        shape, (start, stop) = self._graph.shapes[norm.x], norm.axes
        if len(shape) == 4 and (start, stop) == (2, 4) and norm.centred and not norm.least:
            factors = np.full(shape[1], norm.factor)
            self._write(node, "instance_norm", norm, [factors, np.zeros_like(factors)])
            return
        count = prod(shape[start:])
        is_short = start == len(shape) - 1 or count <= _LONGEST
        if stop == len(shape) and is_short and count % self._multiple == 0:
            last, vectors = self._with_constants(node, norm)
            self._write(last, "row_norm", norm, vectors)

    def _with_constants(self, node: Node, norm: Norm) -> tuple[Node, list[Array]]:
        """The last of the nodes behind a normalisation that multiply by constants and add such; scale and shift."""
        shape, found = self._graph.shapes[node.output], list[Array]()
        row = shape[norm.axes[0] :]
        for function, usual in (("mul", norm.factor), ("add", 0.0)):
            vector = np.full(prod(row), usual)
            behind = [] if node.output in self._graph.outputs else self._readers.get(node.output, [])
            if len(behind) == 1 and expression_of(behind[0]) == (function, "a", "b"):
                given = next((self._graph.constants[x] for x in behind[0].inputs if x in self._graph.constants), None)
                if given is not None and is_of_row(given, row) and self._graph.shapes[behind[0].output] == shape:
                    vector, node = given.reshape(-1) * (vector if function == "mul" else 1), behind[0]
            found.append(np.broadcast_to(vector, (prod(row),)))
        return node, found

    def _write(self, node: Node, op: str, norm: Norm, vectors: list[Array]) -> None:
        """The normalisation in the place of a node whose result it gives."""
        graph, shape = self._graph, self._graph.shapes[norm.x]
        names = [fresh(graph, f"{node.output}.{word}") for word in ("scale", "shift")]
        self._constants |= {name: v.astype(np.float32) for name, v in zip(names, vectors, strict=True)}
        attributes = norm.attributes if op == "row_norm" else {"epsilon": norm.epsilon}
        if op != "row_norm" or norm.axes[0] == len(shape) - 1:
            self._found[node.output] = [Node(node.name, op, (norm.x, *names), node.outputs, attributes)]
            return
        before, after = (fresh(graph, f"{node.output}.{word}") for word in ("rows", "normalised"))
        rows = (prod(shape[: norm.axes[0]]), prod(shape[norm.axes[0] :]))
        self._shapes |= {before: rows, after: rows}
        self._found[node.output] = [
            Node(node.name, "reshape", (norm.x,), (before,), {"shape": rows}),
            Node(node.name, op, (before, *names), (after,), attributes),
            Node(node.name, "reshape", (after,), node.outputs, {"shape": shape}),
        ]
