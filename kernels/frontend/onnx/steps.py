"""One ONNX node as several canonical operations: each step takes names of tensors and gives the name of its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode, as_stored
from kernels.ir.expressions import LETTERS, Expression, number_of, with_operands
from kernels.ir.graph import Graph, Node
from kernels.ir.packed import is_finite
from kernels.ir.shapes import MAX_TAKE_RANK, MAX_TRANSPOSE_RANK, output_shape
from kernels.ir.taking import joined
from kernels.reference import evaluate

Operand = str | float | AnyArray
MAX_PLACES = 1 << 24
"""Whole numbers that fp32 holds."""


class Steps:
    """The steps of one node. Operands are names (activations or constants), arrays or numbers."""

    def __init__(self, node: OnnxNode, to: Context) -> None:
        self.node = node
        self.to = to

    # -- what is given -------------------------------------------------------------------------------------------------

    def has(self, index: int) -> bool:
        return bool(self.node.input(index))

    def operand(self, index: int) -> str:
        """Name of an input, activation or constant. Raises ModelError where it is absent."""
        name = self.node.input(index)
        self.to.require(self.node, name, f"input {index}")
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        return self.to.constants[name].shape if name in self.to.constants else self.to.shapes[name]

    def value(self, name: str) -> AnyArray | None:
        """A constant; None of an activation."""
        return self.to.constants.get(name)

    def attribute(self, name: str, usual: Any = None) -> Any:
        return self.node.attributes.get(name, usual)

    def whole_numbers(self, index: int, attribute: str = "") -> list[int] | None:
        """A constant input, or an attribute; None where both are absent."""
        if attribute and attribute in self.node.attributes:
            return [int(number) for number in np.reshape(self.node.attributes[attribute], -1)]
        given = self.to.optional_constant(self.node, index)
        return None if given is None else [int(number) for number in given.reshape(-1)]

    def check_size(self, shape: Sequence[int]) -> None:
        """Raise ModelError where the node's result would be too large, before anything of its size is made."""
        self.to.check_size(next(filter(None, self.node.outputs)), tuple(map(int, shape)))

    def places(self, count: int) -> None:
        """Places of so many elements are computed as numbers. Raises UnsupportedNode where fp32 cannot hold them."""
        if count > MAX_PLACES:
            self.node.reject(f"places of {count} elements are computed; at most {MAX_PLACES} are supported")
        self.to.places = max(self.to.places, count)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def emit(
        self, op: str, inputs: Sequence[str], attributes: Mapping[str, Any] | None = None, target: str = ""
    ) -> str:
        """Append a canonical node, whose result may be named; of weights alone compute a weight, because passes expect
        that a node reads an activation."""
        target = target or self.to.fresh(f"{next(filter(None, self.node.outputs))}.{len(self.to.nodes)}")
        new = Node(self.node.name, op, tuple(inputs), (target,), dict(attributes or {}))
        shape = output_shape(new, self.to.shapes)
        if self.to.weights.keys() >= {*inputs}:
            self.to.reserve(self.node, 8 * prod(shape))
            shapes = {target: shape, **{name: self.to.shapes[name] for name in inputs}}
            graph = Graph(
                self.node.name, (), (target,), [new], shapes, {name: self.to.weights[name] for name in inputs}
            )
            return self.constant(evaluate(graph, {})[target], target, nan=True)
        self.to.add_shape(target, shape)
        self.to.nodes.append(new)
        return target

    def end(self, result: str, index: int = 0) -> None:
        """The result is the node's output of this number."""
        if index < len(self.node.outputs) and self.node.outputs[index]:
            source = self.tensor(result)
            target = self.node.outputs[index]
            self.to.add_shape(target, self.to.shapes[source])
            self.to.nodes.append(self.alias(source, target))

    def alias(self, source: str, target: str) -> Node:
        """A node that gives a tensor another name."""
        return Node(self.node.name, "reshape", (source,), (target,), {"shape": self.to.shapes[source]})

    def constant(self, array: AnyArray, name: str = "", *, nan: bool = False) -> str:
        """A weight of this content, infinities included; `nan`: NaN, too, which else is refused."""
        base = name or f"{next(filter(None, self.node.outputs))}.constant"
        content = as_stored(array)
        finite = is_finite(content)
        if not (nan or finite) and np.isnan(content).any():
            raise ModelError(
                f"tensor {base!r} (node {self.node.name!r}) holds NaN; export the model from intact weights"
            )
        known = self.to.constants.get(base)
        other = None if known is content else known
        if other is not None and (other.shape != content.shape or not np.array_equal(other, content, equal_nan=True)):
            base = f"{base}.{len(self.to.nodes)}"
        if finite:
            return self.to.add_weight(base, content)
        unique = self.to.fresh(base)
        self.to.weights[unique], self.to.shapes[unique] = content, content.shape
        return unique

    def tensor(self, operand: Operand) -> str:
        """An operand that operations can read: an activation or a weight."""
        if isinstance(operand, str):
            return self.constant(self.to.constants[operand], operand) if operand in self.to.constants else operand
        return self.constant(np.asarray(operand))

    def map(self, expression: Expression, *operands: Operand) -> str:
        """An expression of operands that broadcast; single numbers become part of it."""
        given = [self._known(operand) for operand in operands]
        shapes = [self.shape(each) if isinstance(each, str) else np.shape(each) for each in given]
        inputs: dict[str, str] = {}
        by: dict[str, Expression] = {}
        for letter, each in zip(LETTERS, given, strict=False):
            if not isinstance(each, str) and np.size(each) == 1 and np.isfinite(np.asarray(each, np.float64)).all():
                by[letter] = number_of(np.asarray(each))
            else:
                name = self.tensor(each)
                by[letter] = inputs.setdefault(name, LETTERS[len(inputs)])
        if not inputs:  # an operation reads something
            inputs[self.tensor(given[0])] = by[LETTERS[0]] = LETTERS[0]
        try:
            wanted = tuple(int(extent) for extent in np.broadcast_shapes(*shapes))
        except ValueError as e:
            raise ModelError(f"node {self.node.name!r} ({self.node.op}): shapes {shapes} do not broadcast") from e
        result = self.emit("map", tuple(inputs), {"expression": with_operands(expression, by)})
        return self.reshape(result, wanted)

    def _known(self, operand: Operand) -> str | AnyArray:
        if isinstance(operand, str):
            return self.to.constants.get(operand, operand)
        return np.asarray(operand)

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        source = self.tensor(x)
        wanted = tuple(int(extent) for extent in shape)
        return source if self.to.shapes[source] == wanted else self.emit("reshape", (source,), {"shape": wanted})

    def take(
        self, x: str, shape: Sequence[int], tables: Sequence[Sequence[float] | AnyArray], strides: Sequence[int],
        value: float = 0.0,
    ) -> str:  # fmt: skip
        """See `kernels/ir/taking.py`; more axes than it may have are joined where that is possible."""
        ends = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
        in_order = all(n == 1 or stride == end for n, stride, end in zip(shape, strides, ends, strict=True))
        if (
            in_order
            and prod(shape) == prod(self.shape(x))
            and all(np.array_equal(places, np.arange(n)) for places, n in zip(tables, shape, strict=True))
        ):
            return self.reshape(x, shape)
        if len(shape) > MAX_TAKE_RANK:
            self.node.reject(f"it needs {len(shape)} axes at once; at most {MAX_TAKE_RANK} are supported")
        if 0 in shape:
            self.node.damaged(f"its result of shape {tuple(shape)} is empty")
        table = self.constant(joined(tables) if tables else np.zeros(0), f"{self.node.outputs[0]}.table")
        attributes = {"shape": tuple(map(int, shape)), "strides": tuple(map(int, strides)), "value": value}
        return self.emit("take", (self.tensor(x), table), attributes)

    def pick(self, x: str, axis: int, places: Sequence[int] | AnyArray, value: float = 0.0) -> str:
        """Elements along an axis; -1: none, but `value`. Raises ModelError for places outside of the axis."""
        shape = self.shape(x)
        if np.any(np.asarray(places) >= shape[axis]):
            asked, name = f"element {np.max(places)} of {shape[axis]} along axis {axis}", self.node.name
            raise ModelError(f"node {name!r} ({self.node.op}): it asks for {asked}")
        outer, inner, count = prod(shape[:axis]), prod(shape[axis + 1 :]), len(places)
        tables = [np.arange(outer), np.asarray(places), np.arange(inner)]
        taken = self.take(x, (outer, count, inner), tables, (shape[axis] * inner, inner, 1), value)
        return self.reshape(taken, (*shape[:axis], count, *shape[axis + 1 :]))

    def elements(self, x: str, places: AnyArray) -> str:
        """Single elements by their number, row-major, in the shape of `places`."""
        flat = self.reshape(x, (prod(self.shape(x)),))
        return self.reshape(self.pick(flat, 0, places.reshape(-1)), places.shape)

    def transpose(self, x: str, perm: Sequence[int]) -> str:
        shape = self.shape(x)
        if list(perm) == sorted(perm):
            return self.tensor(x)
        if len(shape) <= MAX_TRANSPOSE_RANK:
            return self.emit("transpose", (self.tensor(x),), {"perm": tuple(perm)})
        strides = [prod(shape[axis + 1 :]) for axis in perm]
        extents = [shape[axis] for axis in perm]
        return self.take(x, extents, [np.arange(extent) for extent in extents], strides)

    def expand(self, x: str, shape: Sequence[int]) -> str:
        """Broadcast to this shape."""
        given = (1,) * (len(shape) - len(self.shape(x))) + self.shape(x)
        if given == tuple(shape):
            return self.reshape(x, shape)
        self.check_size(shape)
        strides = [prod(given[axis + 1 :]) if given[axis] > 1 else 0 for axis in range(len(shape))]
        return self.take(
            x, shape, [np.arange(n) if s else np.zeros(n) for n, s in zip(shape, strides, strict=True)], strides
        )

    def reduce(self, x: str, axes: Sequence[int], kind: str, *, keep: bool = True) -> str:
        """Reduce over any axes, counted from 0."""
        shape, axes = self.shape(x), sorted(axes)
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        if not axes:
            return self.tensor(x)
        if axes != list(range(axes[0], axes[0] + len(axes))):
            x = self.transpose(x, (*kept, *axes))
            start = len(kept)
        else:
            start = axes[0]
        found = self.emit("reduce", (self.tensor(x),), {"start": start, "stop": start + len(axes), "kind": kind})
        ones = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
        return self.reshape(found, ones if keep else [shape[axis] for axis in kept])

    def gather(self, x: str, indices: str, axis: int) -> str:
        return self.emit("gather", (self.tensor(x), self.tensor(indices)), {"axis": axis})

    def concat(self, parts: Sequence[str], axis: int) -> str:
        tensors = [self.tensor(part) for part in parts]
        return tensors[0] if len(tensors) == 1 else self.emit("concat", tensors, {"axis": axis})

    def slice(self, x: str, axis: int, start: int, stop: int) -> str:
        if (start, stop) == (0, self.shape(x)[axis]):
            return self.tensor(x)
        return self.emit("slice", (self.tensor(x),), {"axis": axis, "start": start, "stop": stop})

    def sort(self, x: str, k: int, gives: str, *, largest: bool = True) -> str:
        """The k best numbers of each row, or their places; of equal numbers the one that comes first is the better."""
        return self.emit("sort", (self.tensor(x),), {"k": k, "largest": largest, "gives": gives})

    def true_places(self, truth: str) -> tuple[str, str]:
        """Places of the ones among ones and zeros (n), in their order, and how many there are (1): behind them places
        have no meaning."""
        (n,) = self.shape(truth)
        self.places(n)
        places = self.sort(self.reshape(truth, (1, n)), n, "places")
        return self.reshape(places, (n,)), self.reduce(truth, [0], "sum")

    def matmul(self, a: str, b: str) -> str:
        """Multiply like numpy.matmul, two dimensions or more; either side may be constant."""
        left, right = self.shape(a), self.shape(b)
        depth, rows, columns = left[-1], left[-2], right[-1]
        if depth != right[-2]:
            self.node.damaged(f"shapes {left} and {right} cannot be multiplied")
        if prod(right[:-2]) == 1:
            flat, b = self.reshape(a, (prod(left[:-1]), depth)), self.reshape(b, right[-2:])
            product = self.emit("dense" if b in self.to.weights else "matmul", (flat, b))
            lead = left[:-2] if len(left) >= len(right) else (1,) * (len(right) - len(left)) + left[:-2]
            return self.reshape(product, (*lead, rows, columns))
        lead = tuple(int(extent) for extent in np.broadcast_shapes(left[:-2], right[:-2]))
        a, b = self.expand(a, (*lead, *left[-2:])), self.expand(b, (*lead, *right[-2:]))
        batch = prod(lead)
        product = self.emit(
            "matmul", (self.reshape(a, (batch, rows, depth)), self.reshape(b, (batch, depth, columns)))
        )  # fmt: skip
        return self.reshape(product, (*lead, rows, columns))
