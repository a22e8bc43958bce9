"""Pairs of operators of which the first finds places, numbers or sizes that the second takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from .arrays import Array, ints, normal, shape_of
from .layers import windows


@dataclass
class Chain:
    """Nodes as they are added, what they are given, and which of their results are read."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    given: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, Array] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)

    def take(self, array: Array) -> str:
        """An input of the graph."""
        self.given[name := f"x{len(self.given)}"] = np.asarray(array)
        return name

    def store(self, array: Any) -> str:
        """A constant."""
        self.weights[name := f"w{len(self.weights)}"] = np.asarray(array)
        return name

    def many(self, count: int, op: str, *inputs: str, **attributes: Any) -> list[str]:
        """A node of so many results."""
        names = [f"t{len(self.nodes)}_{index}" for index in range(count)]
        self.nodes.append(onnx.helper.make_node(op, inputs, names, **attributes))
        return names

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node of one result."""
        return self.many(1, op, *inputs, **attributes)[0]

    def give(self, *names: str) -> None:
        """Results that are compared."""
        self.outputs += names

    def chance(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)

    def numbers(self, *shape: int) -> Array:
        """Often equal ones."""
        x = normal(self.rng, *shape)
        return np.round(x) if self.chance(0.4) else x

    def as_float(self, name: str) -> str:
        return self.add("Cast", name, to=onnx.TensorProto.FLOAT)


Pair = Callable[[Chain], None]


def _pool(to: Chain) -> tuple[Array, str, list[str], dict[str, Any]]:
    (x,), found = windows("max")(to.rng)
    found["storage_order"] = int(to.rng.integers(2))
    x = np.round(x) if to.chance(0.4) else x
    name = to.take(x)
    return x, name, to.many(2, "MaxPool", name, **found), found


def unpooled(to: Chain) -> None:
    """The maxima of MaxPool go back, as they are or changed, to where they were."""
    x, _, (values, places), found = _pool(to)
    if to.chance():
        values = to.add(str(to.rng.choice(["Relu", "Neg", "Exp"])), values)
    given = {key: found[key] for key in ("kernel_shape", "strides", "pads") if key in found}
    size = [to.store(ints(*x.shape))] if to.chance(0.7) else []
    to.give(to.add("MaxUnpool", values, places, *size, **given))


def flat_places(to: Chain) -> None:
    """MaxPool's places in the tensor laid flat: taken from, put to."""
    x, name, (values, places), _ = _pool(to)
    flat, minus = to.store(ints(-1)), to.add("Reshape", places, to.store(ints(-1)))
    to.give(to.add("Gather", to.add("Reshape", name, flat), minus))
    if to.chance():
        zeros, put = to.store(np.zeros(x.size, np.float32)), to.add("Reshape", values, flat)
        to.give(to.add("ScatterElements", zeros, minus, put, axis=0, reduction="max"))


def extreme(to: Chain) -> None:
    """ArgMax and ArgMin, and rows, elements, marks and neighbours of what they name."""
    x = to.numbers(*shape_of(to.rng, (1, 2, 3), 6))
    axis, name = int(to.rng.integers(x.ndim)), to.take(x)
    keep = int(to.rng.integers(2))
    found = to.add(
        str(to.rng.choice(["ArgMax", "ArgMin"])), name, axis=axis - (x.ndim if to.chance() else 0), keepdims=keep,
        select_last_index=int(to.rng.integers(2)),
    )  # fmt: skip
    extent, kind = x.shape[axis], int(to.rng.integers(5))
    if kind == 0:
        to.give(to.add("Gather", to.store(normal(to.rng, extent, 3)), found))
    elif kind == 1:
        at = found if keep else to.add("Unsqueeze", found, to.store(ints(axis)))
        to.give(to.add("GatherElements", to.take(normal(to.rng, *x.shape)), at, axis=axis))
    elif kind == 2:
        to.give(to.add("OneHot", found, to.store(ints(extent)), to.store(np.float32([0.5, 2])), axis=-1))
    elif kind == 3:
        at = found if keep else to.add("Unsqueeze", found, to.store(ints(axis)))
        lower, upper = to.store(np.int64(0)), to.store(np.int64(extent - 1))
        at = to.add("Clip", to.add("Add", at, to.store(ints(int(to.rng.integers(-1, 2))))), lower, upper)
        to.give(to.add("ScatterElements", name, at, to.as_float(at), axis=axis))
    else:
        moved = to.add("Mod", to.add("Add", found, to.store(ints(2))), to.store(ints(extent)))
        to.give(to.add("Gather", name, moved, axis=axis))


def best(to: Chain) -> None:
    """TopK, and elements and rows of what it names."""
    x = to.numbers(*shape_of(to.rng, (1, 2, 3), 6))
    axis, name = int(to.rng.integers(x.ndim)), to.take(x)
    k = int(to.rng.integers(1, x.shape[axis] + 1))
    values, places = to.many(
        2, "TopK", name, to.store(ints(k)), axis=axis - (x.ndim if to.chance() else 0),
        largest=int(to.rng.integers(2)),
    )  # fmt: skip
    kind = int(to.rng.integers(6))
    if kind == 0:
        to.give(to.add("GatherElements", to.take(normal(to.rng, *x.shape)), places, axis=axis))
    elif kind == 1:
        zeros = to.store(np.zeros(x.shape, np.float32))
        how = str(to.rng.choice(["none", "add", "mul", "max", "min"]))
        to.give(to.add("ScatterElements", zeros, places, values, axis=axis, reduction=how))
    elif kind == 2:
        to.give(to.add("Gather", to.take(normal(to.rng, x.shape[axis], 2)), places))
    elif kind == 3:  # the rank of each element
        order = to.many(2, "TopK", to.as_float(places), to.store(ints(k)), axis=axis, largest=0)[1]
        to.give(order, to.add("GatherElements", values, order, axis=axis))
    elif kind == 4:  # row and column of a place
        by = to.store(ints(int(to.rng.integers(1, 4))))
        to.give(to.add("Div", places, by), to.add("Mod", places, by))
    else:
        tail = to.add("Slice", places, to.store(ints(0)), to.store(ints(1)), to.store(ints(axis)))
        to.give(to.add("Gather", name, tail, axis=axis))


def nonzero(to: Chain) -> None:
    """NonZero, and what is taken from its places or put there."""
    shape = shape_of(to.rng, (1, 2, 3), 5)
    name = to.take(np.round(normal(to.rng, *shape)) * (to.rng.random(shape) < to.rng.choice([0.1, 0.6, 1])))
    at = to.add("Transpose", to.add("NonZero", name), perm=[1, 0])
    kind = int(to.rng.integers(5))
    if kind == 0:
        to.give(to.add("GatherND", to.take(normal(to.rng, *shape)), at))
    elif kind == 1:
        found = to.add("GatherND", name, at)
        to.give(to.add("ScatterND", to.take(normal(to.rng, *shape)), at, found))
    elif kind == 2:
        found = to.add("GatherND", name, at)
        how = str(to.rng.choice(["ReduceSum", "ReduceSumSquare"]))
        to.give(to.add(how, found, to.store(ints(0)), keepdims=int(to.rng.integers(2))))
    elif kind == 3:
        row = to.add("Gather", at, to.store(np.int64(int(to.rng.integers(len(shape))))), axis=1)
        to.give(row, to.add("Gather", to.store(normal(to.rng, max(shape), 3)), row))
    else:
        count = to.add("Gather", to.add("Shape", at), to.store(np.int64(0)))
        to.give(to.add("Mul", to.as_float(count), to.store(np.float32(0.5))))


def selected(to: Chain) -> None:
    """NonMaxSuppression, and the boxes, classes and scores that it names."""
    batch, classes, boxes = (int(n) for n in to.rng.integers(1, (3, 3, 9)))
    corners = to.rng.uniform(0, 8, (batch, boxes, 4)).astype(np.float32)
    named, scores = to.take(corners), to.take(to.rng.random((batch, classes, boxes)).astype(np.float32))
    found = to.add(
        "NonMaxSuppression", named, scores, to.store(ints(int(to.rng.integers(1, boxes + 1)))),
        to.store(np.float32([to.rng.choice([0.1, 0.5, 0.9])])), to.store(np.float32([to.rng.choice([0, 0.3, 0.99])])),
        center_point_box=int(to.rng.integers(2)),
    )  # fmt: skip
    column = [to.add("Gather", found, to.store(np.int64(k)), axis=1) for k in range(3)]
    kind = int(to.rng.integers(4))
    if kind == 0:
        to.give(to.add("GatherND", named, to.add("Gather", found, to.store(ints(0, 2)), axis=1)))
    elif kind == 1:
        to.give(to.add("GatherND", scores, found), column[1])
    elif kind == 2:
        to.give(to.add("Gather", to.store(normal(to.rng, boxes, 3)), column[2]))
    else:
        score = to.add("GatherND", scores, found)
        to.give(to.add("ReduceSum", score, to.store(ints(0)), keepdims=1), to.as_float(to.add("Shape", found)))


def shaped(to: Chain) -> None:
    """Shape, and what is made of such sizes: as exporters write it."""
    shape = shape_of(to.rng, (2, 3, 4), 5)
    x = to.take(normal(to.rng, *shape))
    size, axis = to.add("Shape", x), int(to.rng.integers(len(shape)))
    one = to.add("Gather", size, to.store(ints(axis)))
    kind = int(to.rng.integers(6))
    if kind == 0:
        rest = to.add("Slice", size, to.store(ints(1)), to.store(ints(len(shape))))
        to.give(to.add("Reshape", x, to.add("Concat", to.store(ints(-1)), rest, axis=0)))
    elif kind == 1:
        to.give(to.add("Expand", to.take(normal(to.rng, *(1 for _ in shape))), size))
    elif kind == 2:
        begin = to.add("Div", one, to.store(ints(2)))
        to.give(to.add("Slice", x, begin, one, to.store(ints(axis)))) if shape[axis] > 0 else None
    elif kind == 3:
        scalar = to.add("Squeeze", one)
        steps = to.add("Range", to.store(np.int64(0)), scalar, to.store(np.int64(1)))
        flipped = to.add("Sub", to.add("Sub", scalar, to.store(np.int64(1))), steps)
        to.give(to.add("Gather", x, flipped, axis=axis))
    elif kind == 4:
        made = to.add("ConstantOfShape", size, value=onnx.numpy_helper.from_array(np.float32([1.5])))
        to.give(to.add("Sub", made, x))
    else:
        total = to.as_float(to.add("Size", x))
        to.give(to.add("Div", to.add("ReduceSum", x, keepdims=0), total))


def running(to: Chain) -> None:
    """The place of each marked element among the marked ones, and what is put there."""
    n = int(to.rng.integers(2, 12))
    x = to.take(to.numbers(n))
    marks = to.add("Greater", x, to.store(np.float32(to.rng.choice([-0.5, 0, 0.5]))))
    whole = to.add("Cast", marks, to=onnx.TensorProto.INT64)
    last = to.add("Sub", to.add("CumSum", whole, to.store(np.int64(0))), to.store(ints(1)))
    at = to.add("Where", marks, last, to.store(ints(n)))
    room = to.store(np.zeros(n + 1, np.float32))
    if to.chance():
        to.give(to.add("ScatterElements", room, at, x, axis=0, reduction=str(to.rng.choice(["add", "max"]))))
    else:
        to.give(to.add("Gather", to.store(normal(to.rng, n + 1, 2)), at))


def counted(to: Chain) -> None:
    """A length that is computed: how much of an axis is read, turned round or marked."""
    n, d = (int(extent) for extent in to.rng.integers(2, 7, 2))
    x, score = to.take(normal(to.rng, n, d)), to.take(to.numbers(d))
    marks = to.add("Cast", to.add("Greater", score, to.store(np.float32(0))), to=onnx.TensorProto.INT64)
    kind = int(to.rng.integers(3))
    if kind == 0:
        total = to.add("ReduceSum", marks, to.store(ints(0)), keepdims=1)
        bounded = to.add("Clip", total, to.store(np.int64(0)), to.store(np.int64(d)))
        to.give(to.add("Slice", x, to.store(ints(0)), bounded, to.store(ints(1))))
    elif kind == 1:
        place = to.add("ArgMax", x, axis=1, keepdims=0)
        lengths = to.add("Add", place, to.store(ints(1)))
        to.give(to.add("ReverseSequence", x, lengths, batch_axis=0, time_axis=1))
    else:
        place = to.add("ArgMin", x, axis=1, keepdims=1)
        steps = to.store(np.arange(d))
        to.give(to.add("Where", to.add("LessOrEqual", steps, place), x, to.store(np.float32(-1))))


PAIRS: dict[str, Pair] = {
    "MaxPool-MaxUnpool": unpooled,
    "MaxPool-Gather": flat_places,
    "ArgMax-": extreme,
    "TopK-": best,
    "NonZero-": nonzero,
    "NonMaxSuppression-": selected,
    "Shape-": shaped,
    "CumSum-": running,
    "Size-": counted,
}
"""Each pair's draw, by what hands on."""
