"""`take`: copies of single elements, by one table an axis.

The result's element (i, j, ...) is x's element number table_0[i] * strides[0] + table_1[j] * strides[1] + ..., counted
row-major; where a table says `NOTHING` it is `value`. The tables lie behind each other in one constant of whole
numbers. So transposing, slicing by any step, repeating, padding, spreading (strides of zeros), windows and choosing by
constant indices are one operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from kernels.errors import ModelError

from .graph import Array, Graph, Node

NOTHING = -1.0


def split_table(table: Array, shape: Sequence[int]) -> list[Array]:
    """The table of each axis."""
    return np.split(table, np.cumsum(shape)[:-1])


def taken_channels(graph: Graph, node: Node) -> list[float] | None:
    """The channels that a `take` takes of pictures, where it chooses nothing else."""
    shape, old = graph.shapes[node.output], graph.shapes[node.inputs[0]]
    if len(shape) != 4 or len(old) != 4:
        return None
    natural = tuple(prod(old[axis + 1 :]) for axis in range(4))
    tables = split_table(graph.constants[node.inputs[1]], shape)
    others = all(np.array_equal(tables[axis], np.arange(old[axis])) for axis in (0, 2, 3))
    known = tuple(node.attributes["strides"]) == natural and others and tables[1].min() >= 0
    return [float(channel) for channel in tables[1]] if known else None


def check_table(graph: Graph, node: Node) -> None:
    """Raise ModelError unless all that a table names is in x: kernels do not look."""
    name = node.inputs[1]
    if name not in graph.constants:
        raise ModelError(f"node {node.name!r} ({node.op}): table {name!r} is no constant")
    most = least = 0
    for part, stride in zip(
        split_table(graph.constants[name], node.attributes["shape"]), node.attributes["strides"], strict=True
    ):
        used = part[part != NOTHING]
        if np.any(used != np.round(used)) or np.any(used < 0):
            raise ModelError(f"node {node.name!r} ({node.op}): table {name!r} holds what is no place")
        ends = (int(used.min()) * stride, int(used.max()) * stride) if used.size else (0, 0)
        least, most = least + min(ends), most + max(ends)
    if least < 0 or most >= np.prod(graph.shapes[node.inputs[0]], dtype=np.int64):
        raise ModelError(f"node {node.name!r} ({node.op}): it reads outside of {node.inputs[0]!r}")


@dataclass(frozen=True)
class Axis:
    """An axis of a result: either its elements are `stride` apart from each other, or a table says where they are."""

    extent: int
    stride: int
    table: tuple[float, ...] | None = None


def axes_of(shape: Sequence[int], strides: Sequence[int], table: Array) -> tuple[int, list[Axis]]:
    """The first element, and as few axes as tell the same, the last one fastest."""
    base, found = 0, list[Axis]()
    for extent, stride, part in zip(shape, strides, split_table(table, shape), strict=True):
        steps = np.diff(part)
        regular = NOTHING not in part and (extent == 1 or bool(np.all(steps == steps[0])))
        if not regular:
            found.append(Axis(extent, stride, tuple(float(place) for place in part)))
            continue
        base += int(part[0]) * stride
        if extent == 1:
            continue
        new = Axis(extent, int(steps[0]) * stride)
        before = found[-1] if found else None
        if before and before.table is None and before.stride == new.stride * extent:
            new = Axis(before.extent * extent, new.stride)
            found.pop()
        found.append(new)
    return base, found or [Axis(1, 0)]


def joined(tables: Iterable[Sequence[float] | Array]) -> Array:
    """One constant of the tables of all axes. Raises ModelError where a place is too far for a number of fp32."""
    table = np.concatenate([np.asarray(part, np.float64) for part in tables])
    if np.any(table > 1 << 24):
        raise ModelError("an axis of more than 2^24 elements cannot be taken from by a table")
    return table.astype(np.float32)
