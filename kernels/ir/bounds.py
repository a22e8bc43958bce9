"""Bounds of the elements of a tensor, whatever the model's input is.

A size that a model computes from its input needs an upper bound: as much is planned for it; and where 32 bits hold
a number of 64, it is computed in these. Bounds follow from what the canonical nodes before it compute (interval
arithmetic: R. E. Moore, Interval Analysis, 1966): from constants, from clipping, from conditions, from types. A sum of
the same elements is followed as such (`_Sum`), so that the ends of a box about its centre lie where they do, and not
where half of its largest width away from any centre would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, floor, inf, isnan, prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from .expressions import LETTERS, Expression
from .graph import Node
from .programs import WRAPS, Held, computed
from .types import ElementType, is_whole, to_numpy

Bounds = tuple[float, float]
ANY: Bounds = (-inf, inf)
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
            return _rounded(kind, found[0]), found[1]
        return found if _is_in(found[0], ends_of(kind)) else self._atom(("wrapped", name), ends_of(kind))

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
            return _hull(*(self.bounds(each, depth + 1) for each in inputs))
        if node.op == "put_rows":
            return _hull(*(self.bounds(each, depth + 1) for each in node.inputs[:2]))
        if node.op == "take":
            table, value = self.stored.get(node.inputs[1]), float(node.attributes["value"])
            own = self.bounds(node.inputs[0], depth + 1)
            return own if table is not None and np.all(table >= 0) else _hull(own, (value, value))
        if node.op == "clip":
            return _clipped(self.bounds(node.inputs[0], depth + 1), node.attributes["min"], node.attributes["max"])
        if node.op == "sort":
            places = node.attributes["gives"] == "places"
            last = float(self.shapes[node.inputs[0]][1] - 1)
            return (0.0, last) if places else self.bounds(node.inputs[0], depth + 1)
        if node.op == "suppress":
            return -1.0, float(self.shapes[node.inputs[0]][1] - 1)
        if node.op == "relu":
            return _clipped(self.bounds(node.inputs[0], depth + 1), 0.0, inf)
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
                bounds = _rounded("f32", bounds)
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
            found = found if _is_in(found[0], ends_of(kind)) else self._atom((node.output, expression), ends_of(kind))
            self.parts[node.output] = _hull(found[0], self.parts.get(node.output, found[0]))
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
        rule = _FUNCTIONS.get(function) if kind == "f32" else _WHOLE.get(function)
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
        for key, times in total.parts.items():
            ends = sorted(times * end for end in self.atoms[key])
            low, high = low + ends[0], high + ends[1]
        return (low, high) if is_exact else _widened(low, high)


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


def _widened(low: float, high: float) -> Bounds:
    """Widen bounds by the rounding of fp32 in some steps."""
    slack = 0.0 if inf in (abs(low), abs(high)) else 4e-6 * max(abs(low), abs(high))
    return low - slack, high + slack


def _hull(*parts: Bounds) -> Bounds:
    return min(low for low, _ in parts), max(high for _, high in parts)


def _clipped(of: Bounds, low: float, high: float) -> Bounds:
    return min(max(of[0], low), high), min(max(of[1], low), high)


def times(a: Bounds, b: Bounds) -> Bounds:
    """Return the bounds of products."""
    return _widened(*_products(a, b))


def _products(a: Bounds, b: Bounds) -> Bounds:
    ends = [0.0 if 0.0 in (x, y) else x * y for x in a for y in b]
    return min(ends), max(ends)


def _over(a: Bounds, b: Bounds) -> Bounds:
    return ANY if b[0] <= 0 <= b[1] else times(a, (1 / b[1], 1 / b[0]))


def _absolute(a: Bounds) -> Bounds:
    return (0.0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


def _rising(function: Callable[[float], float]) -> Callable[[Bounds], Bounds]:
    def ends(a: Bounds) -> Bounds:
        try:
            return _widened(function(a[0]), function(a[1]))
        except (OverflowError, ValueError):
            return ANY

    return ends


def _floor(x: float) -> float:
    return x if abs(x) == inf else floor(x)


def _rounded(kind: ElementType, a: Bounds) -> Bounds:
    with np.errstate(over="ignore"):
        low, high = np.asarray(a).astype(to_numpy(kind)).astype(np.float64)
    return float(low), float(high)


def ends_of(kind: ElementType) -> Bounds:
    """Return the least and the largest number of a type of whole numbers."""
    if kind == "bool":
        return 0.0, 1.0
    bits = int(kind[1:])
    return (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if kind[0] == "i" else (0.0, 2.0**bits - 1)


def _is_in(bounds: Bounds, ends: Bounds) -> bool:
    return ends[0] <= bounds[0] and bounds[1] <= ends[1]


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    """Return the bounds of quotients that are cut off, which are 0 by 0."""
    if b[0] < 1 or inf in (*a, -a[0], b[1]):
        return -max(map(abs, a)), max(map(abs, a))
    ends = [float(int(x / y)) for x in a for y in b]
    return min(ends), max(ends)


def _remainder(a: Bounds, b: Bounds) -> Bounds:
    most = max(max(map(abs, b)) - 1, 0.0)
    return max(-most, min(a[0], 0.0)), min(most, max(a[1], 0.0))


def _bits_of_both(a: Bounds, b: Bounds) -> Bounds:
    least = [bounds[1] for bounds in (a, b) if bounds[0] >= 0]
    return (0.0, min(least)) if least else ANY


def _bits_of_any(a: Bounds, b: Bounds) -> Bounds:
    most = max(a[1], b[1])
    return (0.0, 2.0 ** int(most).bit_length() - 1) if min(a[0], b[0]) >= 0 and most < inf else ANY


def _within(kind: ElementType) -> Callable[[Bounds], Bounds]:
    return lambda a: a if _is_in(a, ends_of(kind)) else ends_of(kind)


_FUNCTIONS: Mapping[str, Callable[..., Bounds]] = {
    "add": lambda a, b: _widened(a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: _widened(a[0] - b[1], a[1] - b[0]),
    "mul": times,
    "div": _over,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "less": lambda *_: (0.0, 1.0),
    "equal": lambda *_: (0.0, 1.0),
    "select": lambda _, a, b: _hull(a, b),
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _absolute,
    "exp": _rising(exp),
    "sqrt": _rising(sqrt),
    "floor": lambda a: (_floor(a[0]), _floor(a[1])),
    "round": lambda a: (_floor(a[0]), _floor(a[1]) + 1),
    "float16": lambda a: _rounded("f16", a),
    "bfloat16": lambda a: _rounded("bf16", a),
    "tanh": lambda _: (-1.0, 1.0),
    "erf": lambda _: (-1.0, 1.0),
    "sin": lambda _: (-1.0, 1.0),
    "cos": lambda _: (-1.0, 1.0),
}
_WHOLE: Mapping[str, Callable[..., Bounds]] = {
    **{name: _FUNCTIONS[name] for name in ("min", "max", "less", "equal", "select", "neg", "abs")},
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _products,
    "div": _quotient,
    "remainder": _remainder,
    "bit_and": _bits_of_both,
    "bit_or": _bits_of_any,
    "bit_xor": _bits_of_any,
    "shift_right": lambda a, _: (0.0, a[1]) if a[0] >= 0 else ANY,
    **{name: _within(kind) for kind, name in WRAPS.items()},
}
"""The same of whole numbers, exactly; what is beyond their type wraps around (`Reading`)."""
