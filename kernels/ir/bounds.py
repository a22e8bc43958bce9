"""Bounds of the elements of a tensor, whatever the model's input is.

A size that a model computes from its input needs an upper bound: as much is planned for it; and where 32 bits hold
a number of 64, it is computed in these. Bounds follow from what the canonical nodes before it compute
(`intervals.py`): from constants, from clipping, from conditions, from types. A sum of
the same elements is followed as such (`_Sum`), so that the ends of a box about its centre lie where they do, and not
where half of its largest width away from any centre would be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .expressions import LETTERS, Expression
from .graph import Node
from .intervals import ANY, FUNCTIONS, WHOLE, Bounds, clipped, ends_of, hull, is_in, rounded, times, widened
from .programs import Held, computed
from .types import ElementType, is_whole

_DEPTH = 100
"""Nodes one behind the other that are looked through."""
_SAME_ELEMENTS = ("concat", "gather", "reshape", "slice", "transpose")
"""Operations of which every element is one of their inputs'."""


@dataclass(frozen=True)
class _Sum:
    """Number by number: multiples of elements at the same place of other tensors, and a number."""

    parts: Mapping[object, float]
    number: float = 0.0


@dataclass
class Reading:
    """Bounds of tensors by their nodes. With `types` a whole number that its type does not hold wraps around."""

    nodes: Sequence[Node]
    stored: Mapping[str, npt.NDArray[Any]]
    """Constants."""
    shapes: Mapping[str, tuple[int, ...]]
    given: Mapping[str, Bounds]
    """Bounds that are known of tensors."""
    types: Mapping[str, ElementType] = field(default_factory=dict)
    known: dict[str, tuple[Bounds, _Sum]] = field(default_factory=dict)
    atoms: dict[object, Bounds] = field(default_factory=dict)
    keys: dict[str, object] = field(default_factory=dict)
    ids: dict[object, object] = field(default_factory=dict)
    writers: dict[str, Node] = field(default_factory=dict)
    parts: dict[str, Bounds] = field(default_factory=dict)
    """Bounds of all that a map computes in whole numbers, results in between included."""

    def __post_init__(self) -> None:
        self.writers = {node.output: node for node in self.nodes}

    def bounds(self, name: str, depth: int = 0) -> Bounds:
        """Return the bounds of all elements of a tensor, those in its padding included."""
        return self._read(name, depth)[0]

    def _read(self, name: str, depth: int) -> tuple[Bounds, _Sum]:
        if name not in self.known:
            found, kind = self._found(name, depth), self.types.get(name)
            self.known[name] = self._in_type(name, found, kind) if kind else found
        return self.known[name]

    def _in_type(self, name: str, found: tuple[Bounds, _Sum], kind: ElementType) -> tuple[Bounds, _Sum]:
        """Wrap a whole number around, and round a float: the int32 2147483647 is 2147483648 in fp32."""
        if not is_whole(kind):
            return rounded(kind, found[0]), found[1]
        return found if is_in(found[0], ends_of(kind)) else self._atom(("wrapped", name), ends_of(kind))

    def _found(self, name: str, depth: int) -> tuple[Bounds, _Sum]:
        if name in self.given:
            return self._atom(name, self.given[name])
        stored = self.stored.get(name)
        if stored is not None:
            low, high = float(np.min(stored)), float(np.max(stored))
            return self._atom(name, (low, high)) if low < high else ((low, high), _Sum({}, low))
        node = self.writers.get(name)
        if node is None or depth > _DEPTH:
            return self._atom(name, ANY)
        if node.op == "reshape":
            return self._read(node.inputs[0], depth + 1)
        if node.op == "map":
            return self._map(node, depth)
        if node.op in ("add", "mul") and "activation" not in node.attributes:
            return self._map(replace(node, attributes={"expression": (node.op, "a", "b")}), depth)
        return self._atom(self._key(name), self._other(node, depth))

    def _atom(self, key: object, bounds: Bounds) -> tuple[Bounds, _Sum]:
        self.atoms[key] = bounds
        return bounds, _Sum({key: 1.0})

    def _key(self, name: str) -> object:
        """Identify a tensor; two that choose the same elements of one have the same key."""
        if name not in self.keys:
            self.keys[name] = self.ids.setdefault(self._new_key(name), ("key", len(self.ids)))
        return self.keys[name]

    def _new_key(self, name: str) -> object:
        node = self.writers.get(name)
        if node is None or node.op not in ("gather", "reshape", "slice", "take"):
            stored = self.stored.get(name)
            return name if stored is None or stored.size > 16 else (stored.shape, stored.tobytes())
        return (node.op, *map(self._key, node.inputs), repr(sorted(node.attributes.items())))

    def _other(self, node: Node, depth: int) -> Bounds:
        if node.op in _SAME_ELEMENTS:
            inputs = node.inputs[:1] if node.op == "gather" else node.inputs
            return hull(*(self.bounds(each, depth + 1) for each in inputs))
        if node.op == "put_rows":
            return hull(*(self.bounds(each, depth + 1) for each in node.inputs[:2]))
        if node.op == "take":
            table, value = self.stored.get(node.inputs[1]), float(node.attributes["value"])
            own = self.bounds(node.inputs[0], depth + 1)
            return own if table is not None and np.all(table >= 0) else hull(own, (value, value))
        if node.op == "clip":
            return clipped(self.bounds(node.inputs[0], depth + 1), node.attributes["min"], node.attributes["max"])
        if node.op == "sort":
            places = node.attributes["gives"] == "places"
            last = float(self.shapes[node.inputs[0]][1] - 1)
            return (0.0, last) if places else self.bounds(node.inputs[0], depth + 1)
        if node.op == "suppress":
            return -1.0, float(self.shapes[node.inputs[0]][1] - 1)
        if node.op == "relu":
            return clipped(self.bounds(node.inputs[0], depth + 1), 0.0, inf)
        if node.op in ("sigmoid", "softmax", "hard_sigmoid"):
            return 0.0, 1.0
        if node.op == "reduce":
            shape, (start, stop) = self.shapes[node.inputs[0]], (node.attributes["start"], node.attributes["stop"])
            count, kind = prod(shape[start:stop]), node.attributes["kind"]
            if kind in ("max", "min", "mean"):
                return self.bounds(node.inputs[0], depth + 1)
            if kind.endswith(("argmax", "argmin")):
                return 0.0, float(count - 1)
            if kind == "sum":
                low, high = self.bounds(node.inputs[0], depth + 1)
                return low * count, high * count
        if node.op in ("matmul", "dense") and "activation" not in node.attributes:
            count, (a, b, *bias) = (
                self._shape(node.inputs[0])[-1],
                [self.bounds(each, depth + 1) for each in node.inputs],
            )
            low, high = times(a, b)
            more = bias[0] if bias else (0.0, 0.0)
            return low * count + more[0], high * count + more[1]
        return ANY

    def _map(self, node: Node, depth: int) -> tuple[Bounds, _Sum]:
        operands, shape = {}, self.shapes[node.output]
        kind: Held = "f32"
        expression: Expression = node.attributes["expression"]
        if self.types:
            kind, expression = computed(node, self.types)
        for letter, name in zip(LETTERS, node.inputs, strict=False):
            bounds, parts = self._read(name, depth + 1)
            if kind == "f32" and self.types:
                bounds = rounded("f32", bounds)
            if parts.parts and prod(self._shape(name)) != prod(shape):  # broadcast: other places
                bounds, parts = self._atom(("spread", self._key(name), shape), bounds)
            operands[letter] = bounds, parts
        return self._value(node, expression, operands, kind)

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.stored[name].shape if name in self.stored else self.shapes[name]

    def _value(
        self, node: Node, expression: Expression, operands: Mapping[str, tuple[Bounds, _Sum]], kind: Held
    ) -> tuple[Bounds, _Sum]:
        found = self._of_part(node, expression, operands, kind)
        if kind != "f32":
            found = found if is_in(found[0], ends_of(kind)) else self._atom((node.output, expression), ends_of(kind))
            self.parts[node.output] = hull(found[0], self.parts.get(node.output, found[0]))
        return found

    def _of_part(
        self, node: Node, expression: Expression, operands: Mapping[str, tuple[Bounds, _Sum]], kind: Held
    ) -> tuple[Bounds, _Sum]:
        if isinstance(expression, str):
            return operands[expression]
        if not isinstance(expression, tuple):
            number = float(np.float32(expression)) if kind == "f32" and self.types else float(expression)
            return (number, number), _Sum({}, number)
        function, *arguments = expression
        values = [self._value(node, each, operands, kind) for each in arguments]
        rule = FUNCTIONS.get(function) if kind == "f32" else WHOLE.get(function)
        low, high = ANY if rule is None else rule(*(each for each, _ in values))
        is_exact = kind != "f32"
        total = None if is_exact and function == "div" else _linear(function, [parts for _, parts in values])
        if total is not None:
            ends = self._ends(total, is_exact)
            if not any(map(isnan, ends)):
                low, high = max(low, ends[0]), min(high, ends[1])
        if isnan(low) or isnan(high):
            low, high = ANY
        if total is None:
            return self._atom((node.output, expression), (low, high))
        return (low, high), total

    def _ends(self, total: _Sum, is_exact: bool) -> Bounds:
        low = high = total.number
        for key, factor in total.parts.items():
            ends = sorted(factor * end for end in self.atoms[key])
            low, high = low + ends[0], high + ends[1]
        return (low, high) if is_exact else widened(low, high)


def _linear(function: str, parts: list[_Sum]) -> _Sum | None:
    if function in ("add", "sub"):
        return _added(parts[0], parts[1], 1.0 if function == "add" else -1.0)
    if function == "neg":
        return _added(_Sum({}), parts[0], -1.0)
    if function == "mul":
        for one, other in (parts, parts[::-1]):
            if not other.parts:
                return _added(_Sum({}), one, other.number)
    if function == "div" and not parts[1].parts and parts[1].number:
        return _added(_Sum({}), parts[0], 1 / parts[1].number)
    return None


def _added(a: _Sum, b: _Sum, times: float) -> _Sum:
    parts = dict(a.parts)
    for key, value in b.parts.items():
        parts[key] = parts.get(key, 0.0) + times * value
    return _Sum({key: value for key, value in parts.items() if value}, a.number + times * b.number)
