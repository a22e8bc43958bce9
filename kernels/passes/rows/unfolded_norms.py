"""Layer normalisations as Keras writes them: x * s + (shift - mean * s), where s is scale / root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernels.ir.activations import expression_of
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape

from .roots import Distance, inverse_root, mean_over

_Term = tuple[int, tuple[str, ...]]
"""Its sign, and one tensor or two that are multiplied."""
_ONE, _NOTHING = np.ones(1, np.float32), np.zeros(1, np.float32)


@dataclass(frozen=True)
class Unfolded:
    """Rows of x, normalised, times a scale and plus a shift of each column."""

    x: str
    epsilon: float
    scale: Array
    shift: Array


def unfolded(graph: Graph, node: Node, writers: Mapping[str, Node]) -> Unfolded | None:
    """The normalisation whose last sum a node is."""
    shape, terms = graph.shapes[node.output], _terms(node, writers)
    products = sorted((term for term in terms if len(term[1]) == 2), reverse=True)
    single = [(sign, names[0]) for sign, names in terms if len(names) == 1]
    if [sign for sign, _ in products] != [1, -1] or len(single) > 1:
        return None
    sign, shift = single[0] if single else (1, "")
    added = sign * graph.constants.get(shift, _NOTHING)
    if (shift and shift not in graph.constants) or not is_of_row(added, shape[-1:]):
        return None
    for factor in {*products[0][1]} & {*products[1][1]}:
        x, mean = (next((name for name in names if name != factor), factor) for _, names in products)
        inverse, scale = _by_constant(graph, factor, writers)
        last = len(shape) - 1, len(shape)
        found = inverse_root(graph, inverse, "a", Distance(x, last), writers)
        fits = is_of_row(scale, shape[-1:]) and graph.shapes[x] == shape
        if found is not None and fits and mean_over(graph, mean, x, writers) == last and not found[0].floor:
            scale = scale * found[0].scale ** -0.5
            return Unfolded(x, found[0].epsilon, scale.reshape(-1), added.reshape(-1))
    return None


def is_of_row(constant: Array, row: Shape) -> bool:
    """Return whether a constant is one number, or one for each element of a row of this shape."""
    return constant.size == 1 or (constant.shape[-len(row) :] == row and constant.size == np.prod(row))


def _terms(node: Node | None, writers: Mapping[str, Node], sign: int = 1, depth: int = 3) -> list[_Term]:
    """Return the terms of a sum; none where the node is no sum."""

    def of(name: str, sign: int) -> list[_Term]:
        return (_terms(writers.get(name), writers, sign, depth - 1) if depth else []) or [(sign, (name,))]

    match expression_of(node) if node is not None else None, node:
        case ("add", "a", "b"), Node(inputs=(left, right)):
            return of(left, sign) + of(right, sign)
        case ("sub", "a", "b"), Node(inputs=(left, right)):
            return of(left, sign) + of(right, -sign)
        case ("neg", "a"), Node(inputs=(x,)):
            return of(x, -sign)
        case ("mul", "a", "b"), Node(inputs=names):
            negated = [writers[name].inputs[0] if _is_negative(writers.get(name)) else name for name in names]
            changes = sum(new != name for new, name in zip(negated, names, strict=True))
            return [(sign * (-1) ** changes, tuple(negated))]
    return []


def _is_negative(node: Node | None) -> bool:
    return node is not None and expression_of(node) == ("neg", "a")


def _by_constant(graph: Graph, name: str, writers: Mapping[str, Node]) -> tuple[str, Array]:
    """A tensor without the constant that it is multiplied by, and the constant."""
    node = writers.get(name)
    if node is not None and expression_of(node) == ("mul", "a", "b"):
        for other, constant in (node.inputs, node.inputs[::-1]):
            if constant in graph.constants:
                return other, graph.constants[constant]
    return name, _ONE
