"""A tensor as a strided look at another one, through reshapes, transpositions, slices and products with a number, and
rows that are divided by their lengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isclose, prod

import numpy as np

from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.ir.taking import split_table
from kernels.passes.fuse_maps import number_of

from .row_norms import norm_of

Axis = tuple[tuple[int, int], ...]
"""An axis that is made of several: extents and strides, the outermost first."""


@dataclass(frozen=True)
class Look:
    """A tensor as a strided look at another one, times a number.

    `unit`: rows of so many numbers are divided by their length, or by the smallest divisor where that is larger.
    """

    base: str
    start: int
    axes: tuple[Axis, ...]
    factor: float = 1.0
    unit: tuple[int, float] | None = None


def look_at(graph: Graph, name: str, writers: Mapping[str, Node]) -> Look:
    """The furthest tensor of which this one is a strided look."""
    node = writers.get(name)
    shape = graph.shapes[name]
    here = Look(name, 0, tuple(((extent, stride),) for extent, stride in zip(shape, natural(shape), strict=True)))
    if node is None or name in graph.constants:
        return here
    if node.op in ("mul", "map"):
        by = multiplied(graph, node)
        if by is None:
            return _divided(graph, node, writers) or here
        before = look_at(graph, by[0], writers)
        return replace(before, factor=before.factor * by[1])
    if node.op not in ("reshape", "transpose", "slice", "take") or node.inputs[0] in graph.constants:
        return here
    before = look_at(graph, node.inputs[0], writers)
    if node.op == "take":
        return _taken(graph, node, before) or here
    if node.op == "transpose":
        return replace(before, axes=tuple(before.axes[p] for p in node.attributes["perm"]))
    if node.op == "slice":
        axis, (start, stop) = node.attributes["axis"], (node.attributes["start"], node.attributes["stop"])
        stride = stride_of(before.axes[axis])
        if stride is None:
            return here
        axes = tuple(((stop - start, stride),) if at == axis else each for at, each in enumerate(before.axes))
        return replace(before, axes=axes, start=before.start + start * stride)
    axes_found = reshaped(before.axes, shape)
    return here if axes_found is None else replace(before, axes=axes_found)


def _divided(graph: Graph, node: Node, writers: Mapping[str, Node]) -> Look | None:
    """x / max(sqrt(sum of x * x along the last axis), the smallest divisor), as PyTorch's `normalize` is exported."""
    norm, columns = norm_of(graph, node, writers), graph.shapes[node.output][-1]
    if norm is None or norm.centred or norm.epsilon or not norm.least or not isclose(norm.factor**-2, columns):
        return None
    if norm.axes[0] != len(graph.shapes[norm.x]) - 1:
        return None
    before = look_at(graph, norm.x, writers)
    plain = before.factor == 1 and before.unit is None
    return replace(before, unit=(columns, norm.least * columns**0.5)) if plain else None


def _taken(graph: Graph, node: Node, before: Look) -> Look | None:
    """A look at all of a tensor by strides alone; None where tables say which elements are taken."""
    shape, table = node.attributes["shape"], graph.constants[node.inputs[1]]
    parts = split_table(table, shape)
    if np.any(table < 0) or any(np.any(np.diff(part) != np.diff(part)[:1]) for part in parts):
        return None
    strides = [int(part[1] - part[0]) * stride if len(part) > 1 else 0 for part, stride in _with(parts, node)]
    first = sum(int(part[0]) * stride for part, stride in _with(parts, node))
    inner = sorted((axis for axis, extent in enumerate(shape) if extent > 1), key=lambda axis: -strides[axis])
    extents = tuple(shape[axis] for axis in inner)
    elements = prod(graph.shapes[node.inputs[0]])
    if first == 0 and prod(extents) == elements and natural(extents) == tuple(strides[axis] for axis in inner):
        axes = reshaped(before.axes, extents)
        if axes is None:
            return None
        return replace(before, axes=tuple(axes[inner.index(k)] if k in inner else ((1, 0),) for k in range(len(shape))))
    whole = reshaped(before.axes, (elements,))
    if whole is None or stride_of(whole[0]) != 1:
        return None
    axes = tuple(((extent, stride),) for extent, stride in zip(shape, strides, strict=True))
    return replace(before, axes=axes, start=before.start + first)


def _with(parts: Sequence[Array], node: Node) -> Iterable[tuple[Array, int]]:
    return zip(parts, node.attributes["strides"], strict=True)


def natural(shape: Shape) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def reshaped(axes: Sequence[Axis], wanted: Shape) -> tuple[Axis, ...] | None:
    """The same elements by other axes; None where one of them would have to be divided unevenly."""
    rest = [part for axis in axes for part in axis if part[0] > 1]
    out: list[Axis] = []
    for size in reversed(wanted):
        parts: list[tuple[int, int]] = []
        while size > 1:
            extent, stride = rest.pop()
            taken = min(size, extent)
            if size % taken or extent % taken:
                return None
            if extent > taken:
                rest.append((extent // taken, stride * taken))
            parts.append((taken, stride))
            size //= taken
        out.append(tuple(reversed(parts)))
    return tuple(reversed(out))


def stride_of(axis: Axis) -> int | None:
    """Return the stride of an axis whose parts follow on each other; 0 where it has one element."""
    parts = [part for part in axis if part[0] > 1]
    follow = all(outer[1] == inner[0] * inner[1] for outer, inner in pairwise(parts))
    return (parts[-1][1] if parts else 0) if follow else None


def place_of(seen: Look) -> tuple[int, int, int, int] | None:
    """Return the place of rows of four axes; None where vectors of four do not lie side by side."""
    *lead, head, row, column = ((((1, 0),),) * 4 + seen.axes)[-max(len(seen.axes), 4) :]
    strides = [stride_of(axis) for axis in (tuple(part for axis in lead for part in axis), head, row, column)]
    if strides[-1] != 1:
        return None
    place = [seen.start, *strides[:-1]]
    found = tuple(number for number in place if number is not None and number % 4 == 0)
    return (found[0], found[1], found[2], found[3]) if len(found) == 4 else None


def multiplied(graph: Graph, node: Node) -> tuple[str, float] | None:
    """Return the other operand and the factor of a product with a number, or a quotient by one."""
    names = [name for name in node.inputs if number_of(graph, name) is None]
    numbers = [number for name in node.inputs if (number := number_of(graph, name)) is not None]
    if len(names) != 1 or node.attributes.get("activation") or graph.shapes[names[0]] != graph.shapes[node.output]:
        return None
    if node.op == "mul" and len(numbers) == 1:
        return names[0], numbers[0]
    if node.op != "map":
        return None
    expression = node.attributes["expression"]
    by: dict[str, float | None] = {
        letter: number_of(graph, name) for letter, name in zip("abcd", node.inputs, strict=False)
    }
    match expression:
        case ("mul" | "div" as function, str(left), str(right)) if by[left] is None and by[right]:
            number = float(by[right] or 1)
        case ("mul" | "div" as function, str(left), float(number)) if by[left] is None and number:
            pass
        case ("mul" as function, float(number), str(right)) if by[right] is None:
            pass
        case _:
            return None
    return names[0], 1 / number if function == "div" else number
