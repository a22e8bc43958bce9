"""Masks read as inequalities: which keys a row sees, as a function of their places and of the position.

Exporters make masks of ranges, comparisons, choices and products of truths. All of their elements are whole numbers
that are linear in the places along the axes and in the position, or one of two such, which linear inequalities choose
between (`Form`). So a mask is understood for every position at once, without being computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from kernels.ir.activations import expression_of
from kernels.ir.expressions import Expression
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.ir.taking import split_table


@dataclass(frozen=True)
class Linear:
    """number + position * the position + the sum of axes[k] * the place along axis k, counted from the last one."""

    number: float
    position: float = 0.0
    axes: tuple[float, ...] = ()

    def __add__(self, other: Linear) -> Linear:
        wide = max(len(self.axes), len(other.axes))
        pairs = zip(self.of(wide), other.of(wide), strict=True)
        return _linear(self.number + other.number, self.position + other.position, [a + b for a, b in pairs])

    def times(self, number: float) -> Linear:
        return _linear(self.number * number, self.position * number, [each * number for each in self.axes])

    def of(self, rank: int) -> tuple[float, ...]:
        return (*self.axes, *(0.0,) * (rank - len(self.axes)))

    @property
    def constant(self) -> float | None:
        return None if self.position or any(self.axes) else self.number

    def ends(self, box: Box) -> tuple[float, float]:
        """Return the least and the largest of its values."""
        spans = [(self.position, box.positions), *zip(self.axes, box.extents, strict=False)]
        reach = [by * most for by, most in spans]
        return self.number + sum(min(0.0, each) for each in reach), self.number + sum(max(0.0, each) for each in reach)


def _linear(number: float, position: float, axes: list[float]) -> Linear:
    while axes and not axes[-1]:
        axes.pop()
    return Linear(number, position, tuple(axes))


@dataclass(frozen=True)
class Box:
    """The largest position, and the largest place along each axis, from the last one."""

    positions: int
    extents: tuple[int, ...]


@dataclass(frozen=True)
class Form:
    """`inside` where all of `where` are 0 or more, else `outside`."""

    inside: Linear
    outside: Linear = field(default=Linear(0.0))
    where: frozenset[Linear] = frozenset()

    @property
    def number(self) -> float | None:
        """The number that it is everywhere."""
        return None if self.where else self.inside.constant


class Forms:
    """Forms of a graph's tensors; None of what is something else. `position`: the input, one whole number."""

    def __init__(self, graph: Graph, writers: Mapping[str, Node], position: str, positions: int) -> None:
        self._graph, self._writers, self._position, self._positions = graph, writers, position, positions
        self._known: dict[str, Form | None] = {position: Form(Linear(0.0, 1.0))}

    def of(self, name: str) -> Form | None:
        if name not in self._known:
            self._known[name] = None  # what is on the way to itself
            constant, node = self._graph.constants.get(name), self._writers.get(name)
            self._known[name] = _of_constant(constant) if constant is not None else self._of_node(node)
        return self._known[name]

    def box(self, shape: Shape) -> Box:
        return Box(self._positions, tuple(extent - 1 for extent in reversed(shape)))

    def of_expression(self, expression: Expression, node: Node) -> Form | None:
        """The form of an expression of a node's operands."""
        if isinstance(expression, str):
            return self.of(node.inputs["abcd".index(expression)])
        if isinstance(expression, int | float):
            return Form(Linear(float(expression)))
        box = self.box(self._graph.shapes[node.output])
        match expression:
            case ("equal", x, y) if x == y:
                return Form(Linear(1.0))  # but of NaN, which a finite model does not have
            case ("max", ("less", a, b), ("equal", c, d)) if (a, b) in ((c, d), (d, c)):
                return self._compared(a, b, 0.0, node, box)
            case ("less", a, b):
                return self._compared(a, b, -1.0, node, box)
            case ("select", condition, a, b):
                forms = [self.of_expression(each, node) for each in (condition, a, b)]
                return _chosen(*forms)
            case (function, *arguments):
                forms = [self.of_expression(each, node) for each in arguments]
                return None if None in forms else _combined(function, [each for each in forms if each], box)
        return None

    def _compared(self, a: Expression, b: Expression, less: float, node: Node, box: Box) -> Form | None:
        """Whether b - a + less is 0 or more."""
        x, y = self.of_expression(a, node), self.of_expression(b, node)
        if x is None or y is None:
            return None
        return _each([x, y], lambda values: _truth(values[1] + values[0].times(-1) + Linear(less), box))

    def _of_node(self, node: Node | None) -> Form | None:
        if node is None or not node.inputs:
            return None
        shape = self._graph.shapes[node.output]
        expression = expression_of(node)
        if expression is not None:
            return self.of_expression(expression, node)
        if node.op == "concat":
            return self._joined(node)
        before = self.of(node.inputs[0])
        if before is None or (before.number is not None and node.op in ("gather", "reshape", "slice", "transpose")):
            return before
        old, a = self._graph.shapes[node.inputs[0]], node.attributes
        match node.op:
            case "reshape":
                return _moved(before, _kept_axes(old, shape))
            case "transpose":
                perm = a["perm"]
                return _moved(before, {axis: perm.index(axis) for axis in range(len(perm))}, len(perm), len(perm))
            case "slice":
                return _shifted(before, len(shape) - 1 - a["axis"], a["start"])
            case "take":
                return _taken(before, old, node, self._graph.constants.get(node.inputs[1]))
        return None

    def _joined(self, node: Node) -> Form | None:
        """Of parts that go on with the same step along their axis."""
        forms, shapes = [self.of(name) for name in node.inputs], [self._graph.shapes[name] for name in node.inputs]
        parts = [form.inside for form in forms if form is not None and not form.where]
        axis = len(shapes[0]) - 1 - node.attributes["axis"]
        if len(parts) < len(forms):
            return None
        first, count = parts[0], shapes[0][node.attributes["axis"]]
        step = parts[1] + first.times(-1) if len(parts) > 1 else Linear(0.0)
        if step.constant is None or step.number % count:
            return None
        by = first.of(axis + 1)[axis] if count > 1 else step.number / count
        whole = first + _linear(0.0, 0.0, [0.0] * axis + [by]) if count == 1 else first
        start = 0
        for part, shape in zip(parts, shapes, strict=True):
            extent = shape[node.attributes["axis"]]
            own = part if extent > 1 else part + _linear(0.0, 0.0, [0.0] * axis + [by])
            if own != whole + Linear(by * start):
                return None
            start += extent
        return Form(whole)


def _of_constant(array: Array) -> Form | None:
    if not array.size or array.dtype.kind not in "biuf":
        return None
    first, values = float(array.reshape(-1)[0]), np.asarray(array, np.float64)
    steps = [values[tuple(1 if k == axis else 0 for k in range(values.ndim))] - first if n > 1 else 0.0
             for axis, n in enumerate(values.shape)]  # fmt: skip
    expected = first + sum(
        step * np.arange(n).reshape([-1 if k == axis else 1 for k in range(values.ndim)])
        for axis, (step, n) in enumerate(zip(steps, values.shape, strict=True))
    )
    if not np.array_equal(np.broadcast_to(expected, values.shape), values):
        return None
    return Form(_linear(first, 0.0, [float(step) for step in reversed(steps)]))


def _kept_axes(old: Shape, new: Shape) -> dict[int, int] | None:
    """The axes of a reshape that adds or drops such of one element alone, counted from the last one."""
    pairs = [[(k, n) for k, n in enumerate(reversed(shape)) if n > 1] for shape in (old, new)]
    if [n for _, n in pairs[0]] != [n for _, n in pairs[1]]:
        return None
    return {a: b for (a, _), (b, _) in zip(*pairs, strict=True)}


def _moved(form: Form, to: Mapping[int, int] | None, *ranks: int) -> Form | None:
    """The form by other axes; `ranks`: axes of `to` are counted from the first one, of so many."""
    if to is None:
        return None
    if ranks:
        to = {ranks[0] - 1 - a: ranks[1] - 1 - b for a, b in to.items()}

    def each(linear: Linear) -> Linear | None:
        if any(by and axis not in to for axis, by in enumerate(linear.axes)):
            return None
        axes = [0.0] * (max(to.values(), default=-1) + 1)
        for axis, by in enumerate(linear.axes):
            if by:
                axes[to[axis]] = by
        return _linear(linear.number, linear.position, axes)

    return _mapped(form, each)


def _shifted(form: Form, axis: int, start: int) -> Form | None:
    return _mapped(form, lambda linear: linear + Linear(start * linear.of(axis + 1)[axis]))


def _taken(form: Form, old: Shape, node: Node, table: Array | None) -> Form | None:
    """Of a choice that repeats elements or takes each axis from one place on."""
    shape, strides = node.attributes["shape"], node.attributes["strides"]
    if table is None or np.any(table < 0):
        return None
    own = {prod(old[axis + 1 :]): axis for axis in reversed(range(len(old))) if old[axis] > 1}
    to, starts = dict[int, int](), dict[int, int]()
    for axis, (part, stride) in enumerate(zip(split_table(table, shape), strides, strict=True)):
        if not stride or not np.any(part):
            continue
        if stride not in own or np.any(np.diff(part) != 1) or int(part[-1]) >= old[own[stride]] or own[stride] in to:
            return None
        to[own[stride]], starts[own[stride]] = axis, int(part[0])
    moved = form
    for axis, start in starts.items():
        found = _shifted(moved, len(old) - 1 - axis, start)
        if found is None:
            return None
        moved = found
    return _moved(_fixed(moved, [len(old) - 1 - a for a in range(len(old)) if a not in to]), to, len(old), len(shape))


def _fixed(form: Form, axes: list[int]) -> Form:
    """At the first place of these axes."""

    def each(linear: Linear) -> Linear:
        kept = [0.0 if axis in axes else by for axis, by in enumerate(linear.axes)]
        return _linear(linear.number, linear.position, kept)

    return _mapped(form, each) or form


def _mapped(form: Form, each: Callable[[Linear], Linear | None]) -> Form | None:
    before = (form.inside, form.outside, *form.where)
    parts = [found for linear in before if (found := each(linear)) is not None]
    return Form(parts[0], parts[1], frozenset(parts[2:])) if len(parts) == len(before) else None


def _truth(rest: Linear, box: Box) -> Form | None:
    """Whether a linear form of whole numbers is 0 or more."""
    low, high = rest.ends(box)
    if any(number % 1 for number in (rest.number, rest.position, *rest.axes)):
        return None
    if low >= 0 or high < 0:
        return Form(Linear(float(low >= 0)))
    return Form(Linear(1.0), Linear(0.0), frozenset({rest}))


def _chosen(condition: Form | None, a: Form | None, b: Form | None) -> Form | None:
    if condition is None:
        return None
    if condition.number is not None:
        return a if condition.number else b
    inside, outside = condition.inside.constant, condition.outside.constant
    if inside is None or outside is None or (inside != 0) == (outside != 0):
        return None
    first, second = (a, b) if inside else (b, a)
    if first is None or second is None or second.where:
        return None
    if first.where and first.outside != second.inside:
        return None
    return Form(first.inside, second.inside, condition.where | first.where)


def _combined(function: str, forms: list[Form], box: Box) -> Form | None:
    def compute(values: list[Linear]) -> Form | None:
        found = _computed(function, values, box)
        return None if found is None else Form(found)

    return _each(forms, compute)


def _each(forms: list[Form], compute: Callable[[list[Linear]], Form | None]) -> Form | None:
    """A function of forms of which some have two cases; where both have, it is the same but where both are inside."""
    cases = [form for form in forms if form.where]

    def of(insides: list[bool]) -> Linear | None:
        values = [form.inside if inside else form.outside for form, inside in zip(forms, insides, strict=True)]
        found = compute(values)
        return found.inside if isinstance(found, Form) and not found.where else None

    if not cases:
        return compute([form.inside for form in forms])
    every = [True] * len(forms)
    inside, outside = of(every), of([not form.where for form in forms])
    if inside is None or outside is None:
        return None
    if len({form.where for form in cases}) > 1:
        mixed = {of([one is not form for one in forms]) for form in cases}
        if len(cases) > 2 or mixed != {outside}:
            return None
    return Form(inside, outside, frozenset().union(*(form.where for form in cases)))


def _computed(function: str, values: list[Linear], box: Box) -> Linear | None:
    numbers = [value.constant for value in values]
    match function, values:
        case "add", [a, b]:
            return a + b
        case "sub", [a, b]:
            return a + b.times(-1)
        case "neg", [a]:
            return a.times(-1)
        case "mul", [a, b] if numbers[0] is not None or numbers[1] is not None:
            return b.times(numbers[0]) if numbers[0] is not None else a.times(numbers[1] or 0.0)
        case "div", [a, b] if numbers[1]:
            return a.times(1 / numbers[1])
        case "equal", [a, b]:
            low, high = (a + b.times(-1)).ends(box)
            return Linear(float(low == high == 0)) if low == high or low > 0 or high < 0 else None
        case (("max" | "min"), [a, b]):
            low, high = (a + b.times(-1)).ends(box)
            if low >= 0 or high <= 0:
                return a if (low >= 0) == (function == "max") else b
    return None
