"""Means, roots of mean squares, and what is divided by them, however exporters write them.

A divisor comes in one node or several, as a root, a power or its inverse, with epsilon on either side, of a mean or of
a sum. All of them are max(scale * a + epsilon, floor) ** exponent of a mean or sum of squares `a`: a `Power`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import isclose, prod

from kernels.ir.activations import expression_of
from kernels.ir.expressions import Expression, with_operands
from kernels.ir.graph import Graph, Node
from kernels.ir.programs import in_floats
from kernels.passes.fuse_maps import LONGEST, number_of, size_of

Axes = tuple[int, int]
"""The first axis of a reduction, and the one behind its last."""
_ENDLESS, _LEAST = 1e38, 1e-8
"""A bound that numbers of fp32 do not reach, as exporters write one where there is none; and the least factor of a mean
of squares: halves hold one over its root."""


@dataclass(frozen=True)
class Distance:
    """x less its mean over these axes; x itself where there are none."""

    x: str
    axes: Axes | None = None


@dataclass(frozen=True)
class Power:
    """max(scale * a + epsilon, floor) ** exponent."""

    scale: float = 1.0
    epsilon: float = 0.0
    floor: float = 0.0
    exponent: float = 1.0

    def times(self, number: float) -> Power | None:
        """The product with a positive number, where it is a linear expression, a root, or one over such."""
        if number <= 0 or abs(self.exponent) not in (0.5, 1.0):
            return None
        by = number ** (1 / self.exponent)
        return replace(self, scale=self.scale * by, epsilon=self.epsilon * by, floor=self.floor * by)

    def of_mean(self, graph: Graph, reduced: Node) -> Power:
        """(scale * max(a + epsilon, floor)) ** exponent, of the mean that belongs to a mean or sum."""
        is_sum = reduced.attributes.get("kind") == "sum"
        count = prod(graph.shapes[reduced.inputs[0]]) / prod(graph.shapes[reduced.output]) if is_sum else 1.0
        scale = max(self.scale * count, _LEAST)
        return replace(self, scale=scale, epsilon=self.epsilon / scale, floor=self.floor / scale)


def power_of(expression: Expression) -> Power | None:
    """An expression of `a` as a power; None where it is none."""
    match expression:
        case "a":
            return Power()
        case ("sqrt", inner):
            way, number = "pow", 0.5
        case ("add" | "mul" | "max" as way, float(number), inner):
            pass
        case ("div", float(number), inner):
            power = power_of(("pow", inner, -1.0))
            return power.times(number) if power is not None else None
        case ("add" | "mul" | "div" | "max" | "min" | "pow" as way, inner, float(number)):
            pass
        case _:
            return None
    power = power_of(inner)
    if power is None:
        return None
    match way:
        case "pow" if number:
            return replace(power, exponent=power.exponent * number)
        case "mul" | "div" if number > 0:
            return power.times(number if way == "mul" else 1 / number)
        case "min" if number > _ENDLESS and power.exponent > 0:
            return power
        case "max" if number >= 0 and power.exponent in (0.5, 1.0):
            return replace(power, floor=max(power.floor, number ** (1 / power.exponent)))
        case "add" if power.exponent == 1 and power.floor == 0:
            return replace(power, epsilon=power.epsilon + number)
    return None


def statistic_of(
    graph: Graph, name: str, writers: Mapping[str, Node], *, of: Collection[str] = ("reduce", "global_average_pool")
) -> tuple[Expression, Node] | None:
    """A tensor as an expression of a reduction's result `a`, and the reduction; None where it is something else."""
    whole: Expression = "a"
    shape = graph.shapes[name]
    while (node := writers.get(name)) is not None and node.op not in of:
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
    is_one = node is not None and prod(graph.shapes[name]) == prod(shape) and in_floats(node, graph.types)
    return (whole, node) if node is not None and is_one else None


def distance_of(graph: Graph, name: str, writers: Mapping[str, Node]) -> Distance:
    """Return a tensor as x less its mean, or as itself."""
    node = writers.get(name)
    if node is not None and expression_of(node) == ("sub", "a", "b"):
        x, mean = node.inputs
        axes = mean_over(graph, mean, x, writers)
        if axes is not None and graph.shapes[x] == graph.shapes[name]:
            return Distance(x, axes)
    return Distance(name)


def mean_over(graph: Graph, name: str, x: str, writers: Mapping[str, Node]) -> Axes | None:
    """The axes over which a tensor is the mean of x, or the sum times one over their number."""
    expression, reduced = statistic_of(graph, name, writers) or ("", None)
    power = power_of(expression)
    if reduced is None or reduced.inputs[0] != x or power is None or power != Power(power.scale):
        return None
    is_mean = isclose(power.of_mean(graph, reduced).scale, 1.0, rel_tol=1e-6)
    return _axes(graph, reduced, squared=False) if is_mean else None


def inverse_root(
    graph: Graph, name: str, expression: Expression, distance: Distance, writers: Mapping[str, Node]
) -> tuple[Power, Axes] | None:
    """An expression of a tensor as one over the root of the mean of a distance's squares, and the axes of this mean."""
    inner, reduced = statistic_of(graph, name, writers) or ("", None)
    axes = _axes(graph, reduced, squared=True) if reduced is not None else None
    power = power_of(with_operands(expression, {"a": inner})) if axes is not None else None
    if reduced is None or axes is None or power is None or power.exponent != -0.5:
        return None
    power, is_same = power.of_mean(graph, reduced), distance_of(graph, reduced.inputs[0], writers) == distance
    return (power, axes) if is_same and distance.axes in (None, axes) and _LEAST < power.scale < 1 / _LEAST else None


def _axes(graph: Graph, node: Node, *, squared: bool) -> Axes | None:
    """Return the axes of a sum or mean, or of one of squares; None of another reduction."""
    if node.op == "global_average_pool":
        return None if squared else (2, len(graph.shapes[node.inputs[0]]))
    a = node.attributes
    return (a["start"], a["stop"]) if a["kind"] in ("mean", "sum") and a.get("squared", False) == squared else None
