"""Layer, RMS and L2 normalisations of rows as one node, from whatever steps an exporter wrote.

`row_norm`: inputs x, scale, shift. Of each row of the last axis it is
(x - mean) / max(sqrt(mean of (x - mean) ** 2 + epsilon), least) * scale + shift.
Attributes: epsilon; `centred`, False where 0 stands for the mean (RMS and L2 norms), else absent; `least`, where it is
not 0.

Exporters write the divisor in many ways: in one node or several, as a root, a power or its inverse, with epsilon on
either side, of a mean or of a sum. All of them are max(scale * a + epsilon, floor) ** exponent of a mean or sum of
squares `a` (`_Power`). Where others read a part of the steps, that part stays beside the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isclose, prod

import numpy as np

from kernels.ir.expressions import Expression, operands_of, with_operands
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.passes.fuse_maps import LONGEST, expression_of, number_of, size_of
from kernels.passes.prune import prune
from kernels.passes.rewrite import fresh, producers, rebuilt

_ENDLESS, _LEAST = 1e38, 1e-8
"""A bound that numbers of fp32 do not reach, as exporters write one where there is none; and the least factor of a mean
of squares: halves hold one over its root."""


def fuse_row_norms(graph: Graph, *, multiple: int = 4) -> Graph:
    """The steps of a normalisation -> row_norm, where rows have a multiple of so many elements."""
    writers, readers = producers(graph), _readers(graph)
    found: dict[str, Node] = {}
    constants: dict[str, Array] = {}
    for node in graph.nodes:
        norm = norm_of(graph, node, writers)
        if norm is not None and graph.shapes[norm.x][-1] % multiple == 0:
            last, vectors = _with_constants(graph, node, norm.factor, readers)
            names = [fresh(graph, f"{last.output}.{word}") for word in ("scale", "shift")]
            constants |= dict(zip(names, vectors, strict=True))
            attributes = {"epsilon": norm.epsilon} | ({} if norm.centred else {"centred": False})
            attributes |= {"least": norm.least} if norm.least else {}
            found[last.output] = Node(node.name, "row_norm", (norm.x, *names), last.outputs, attributes)
    if not found:
        return graph
    return prune(rebuilt(graph, [found.get(node.output, node) for node in graph.nodes], constants=constants))


@dataclass(frozen=True)
class Norm:
    """Rows of x, normalised and times a factor."""

    x: str
    factor: float
    epsilon: float
    least: float
    centred: bool


def norm_of(graph: Graph, node: Node, writers: Mapping[str, Node]) -> Norm | None:
    """What a product with an inverse root, or a quotient by a root, normalises."""
    for distance, divisor, expression in _quotients(node):
        statistic = statistic_of(graph, divisor, writers)
        if statistic is None or graph.shapes[distance] != graph.shapes[node.output]:
            continue
        inner, reduced = statistic
        power = _power(with_operands(expression, {"a": inner}))
        if power is None or power.exponent != -0.5 or not _is_of_rows(graph, reduced, squared=True):
            continue
        x, centred = _centre(graph, distance, writers)
        if (x, centred) == _centre(graph, reduced.inputs[0], writers):
            power = power.of_mean(graph, reduced)
            if _LEAST < power.scale < 1 / _LEAST:
                return Norm(x, power.scale**-0.5, power.epsilon, power.floor**0.5, centred)
    return None


def _quotients(node: Node) -> list[tuple[str, str, Expression]]:
    """As which products of an operand and an expression in `a` of another one a node can be read: both, and this."""
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


def statistic_of(graph: Graph, name: str, writers: Mapping[str, Node]) -> tuple[Expression, Node] | None:
    """A tensor as an expression of a reduction's result `a`, and the reduction; None where it is something else."""
    whole: Expression = "a"
    shape = graph.shapes[name]
    while (node := writers.get(name)) is not None and node.op != "reduce":
        own = "a" if node.op == "reshape" else expression_of(node)
        names = {each for each in node.inputs if number_of(graph, each) is None}
        if own is None or len(names) != 1 or size_of(whole) > LONGEST:
            return None
        name = names.pop()
        if prod(graph.shapes[name]) != prod(shape):
            return None
        by: dict[str, Expression] = {}
        for letter, each in zip("abcd", node.inputs, strict=False):
            number = number_of(graph, each)
            by[letter] = "a" if number is None else number
        whole = with_operands(whole, {"a": with_operands(own, by)})
    return None if node is None or graph.shapes[name] != shape else (whole, node)


def _is_of_rows(graph: Graph, node: Node, *, squared: bool) -> bool:
    """Whether a reduction is the mean or the sum of the last axis, or of its squares."""
    a, rank = node.attributes, len(graph.shapes[node.inputs[0]])
    is_row = a["kind"] in ("mean", "sum") and (a["start"], a["stop"]) == (rank - 1, rank)
    return is_row and a.get("squared", False) == squared


def _centre(graph: Graph, name: str, writers: Mapping[str, Node]) -> tuple[str, bool]:
    """x and True of x less its mean; else the tensor and False."""
    node = writers.get(name)
    if node is not None and len(node.inputs) == 2 and expression_of(node) == ("sub", "a", "b"):
        x, mean = node.inputs
        if _is_mean(graph, mean, x, writers):
            return x, True
    return name, False


def _is_mean(graph: Graph, name: str, x: str, writers: Mapping[str, Node]) -> bool:
    """Whether a tensor is the mean of each row of x, or the sum times one over their length."""
    expression, reduced = statistic_of(graph, name, writers) or ("", None)
    power = _power(expression)
    if reduced is None or reduced.inputs[0] != x or power is None or not _is_of_rows(graph, reduced, squared=False):
        return False
    return power == _Power(power.scale) and isclose(power.of_mean(graph, reduced).scale, 1.0, rel_tol=1e-6)


@dataclass(frozen=True)
class _Power:
    """max(scale * a + epsilon, floor) ** exponent."""

    scale: float = 1.0
    epsilon: float = 0.0
    floor: float = 0.0
    exponent: float = 1.0

    def of_mean(self, graph: Graph, reduced: Node) -> _Power:
        """(scale * max(a + epsilon, floor)) ** exponent, of the mean that belongs to a mean or sum."""
        count = graph.shapes[reduced.inputs[0]][-1] if reduced.attributes["kind"] == "sum" else 1
        scale = max(self.scale * count, _LEAST)
        return replace(self, scale=scale, epsilon=self.epsilon / scale, floor=self.floor / scale)


def _power(expression: Expression) -> _Power | None:
    """An expression of `a` as a power; None where it is none."""
    match expression:
        case "a":
            return _Power()
        case ("sqrt", inner):
            way, number = "pow", 0.5
        case ("div", 1.0, inner):
            way, number = "pow", -1.0
        case ("add" | "mul" | "max" as way, float(number), inner):
            pass
        case ("add" | "mul" | "div" | "max" | "min" | "pow" as way, inner, float(number)):
            pass
        case _:
            return None
    power = _power(inner)
    if power is None:
        return None
    is_linear = power.exponent == 1 and power.floor == 0
    match way:
        case "pow":
            return replace(power, exponent=power.exponent * number)
        case "min" if number > _ENDLESS and power.exponent > 0:
            return power
        case "max" if number > 0 and power.exponent in (0.5, 1.0):
            return replace(power, floor=max(power.floor, number ** (1 / power.exponent)))
        case "add" if is_linear:
            return replace(power, epsilon=power.epsilon + number)
        case "mul" | "div" if is_linear and number > 0:
            by = number if way == "mul" else 1 / number
            return replace(power, scale=power.scale * by, epsilon=power.epsilon * by)
    return None


def _with_constants(
    graph: Graph, node: Node, factor: float, readers: Mapping[str, list[Node]]
) -> tuple[Node, tuple[Array, Array]]:
    """The last of the nodes behind a normalisation that multiply by constants of a row and add such; scale, shift."""
    shape, found = graph.shapes[node.output], list[Array]()
    for function, usual in (("mul", factor), ("add", 0.0)):
        vector = np.full(shape[-1], usual)
        behind = [] if node.output in graph.outputs else readers.get(node.output, [])
        if len(behind) == 1 and expression_of(behind[0]) == (function, "a", "b"):
            constant = next((graph.constants[x] for x in behind[0].inputs if x in graph.constants), None)
            if constant is not None and _is_of_columns(constant, shape) and graph.shapes[behind[0].output] == shape:
                vector, node = constant.reshape(-1) * (vector if function == "mul" else 1), behind[0]
        found.append(np.broadcast_to(vector, shape[-1:]).astype(np.float32))
    return node, (found[0], found[1])


def _is_of_columns(constant: Array, shape: Shape) -> bool:
    """Whether a constant is one number, or one for each column."""
    return constant.size == 1 or (constant.shape[-1] == shape[-1] == constant.size)


def _readers(graph: Graph) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in set(node.inputs):
            found.setdefault(name, []).append(node)
    return found
