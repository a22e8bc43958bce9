"""Masks read as inequalities: which keys a row sees, as a function of their places and of the position.

Exporters make masks of ranges, comparisons, choices and products of truths. All of their elements are numbers that are
linear in the places along the axes and in the position, or one of two such, which inequalities choose between
(`forms.py`). So a mask is understood for every position at once, without being computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from kernels.ir.activations import expression_of
from kernels.ir.expressions import LETTERS, Expression
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import Shape
from kernels.ir.taking import split_table

from .forms import Box, Form, Linear, best_along, chosen, combined, in_each_case, truth


class Forms:
    """Forms of a graph's tensors; None of what is something else. `position`: the input, from 0 to `last`."""

    def __init__(self, graph: Graph, writers: Mapping[str, Node], position: str, last: int) -> None:
        self._graph, self._writers, self._last = graph, writers, last
        self._known: dict[str, Form | None] = {position: Form(Linear(0.0, 1.0))}

    def of(self, name: str) -> Form | None:
        if name not in self._known:
            constant, node = self._graph.constants.get(name), self._writers.get(name)
            self._known[name] = _of_constant(constant) if constant is not None else self._of_node(node)
        return self._known[name]

    def box(self, shape: Shape) -> Box:
        return Box.of(self._last, shape)

    def of_expression(self, expression: Expression, node: Node) -> Form | None:
        """The form of an expression of a node's operands."""
        if isinstance(expression, str):
            return self.of(node.inputs[LETTERS.index(expression)])
        if isinstance(expression, int | float):
            return Form(Linear(float(expression)))
        match expression:
            case ("equal", x, y) if x == y:
                return Form(Linear(1.0))  # but of NaN, which a finite model does not have
            case ("max", ("less", a, b), ("equal", c, d)) if (a, b) in ((c, d), (d, c)):
                return self._no_less(b, a, 0.0, node)
            case ("less", a, b):
                return self._no_less(b, a, 1.0, node)
        forms = [self.of_expression(each, node) for each in expression[1:]]
        if expression[0] == "select":
            return chosen(*forms)
        known = [form for form in forms if form is not None]
        box = self.box(self._graph.shapes[node.output])
        return combined(expression[0], known, box) if len(known) == len(forms) else None

    def _no_less(self, a: Expression, b: Expression, by: float, node: Node) -> Form | None:
        """The truth of a being no less than b plus a number."""
        x, y = self.of_expression(a, node), self.of_expression(b, node)
        if x is None or y is None:
            return None
        box = self.box(self._graph.shapes[node.output])
        return in_each_case([x, y], lambda values: truth(values[0] - values[1] - Linear(by), box))

    def _of_node(self, node: Node | None) -> Form | None:
        if node is None or not node.inputs:
            return None
        if (expression := expression_of(node)) is not None:
            return self.of_expression(expression, node)
        if node.op == "concat":
            return self._joined(node)
        before = self.of(node.inputs[0])
        if before is None or (before.number is not None and node.op in ("gather", "reshape", "slice", "transpose")):
            return before
        old, new, a = self._graph.shapes[node.inputs[0]], self._graph.shapes[node.output], node.attributes
        match node.op:
            case "reshape":
                kept = [[(axis, n) for axis, n in enumerate(reversed(shape)) if n > 1] for shape in (old, new)]
                same = [n for _, n in kept[0]] == [n for _, n in kept[1]]
                return before.moved({a: b for (a, _), (b, _) in zip(*kept, strict=True)}) if same else None
            case "transpose":
                last = len(new) - 1
                return before.moved({last - axis: last - at for at, axis in enumerate(a["perm"])})
            case "slice":
                axis = len(new) - 1 - a["axis"]
                return _from(before, axis, a["start"])
            case "reduce" if a["stop"] == a["start"] + 1 and not a.get("squared"):
                return best_along(before, len(old) - 1 - a["start"], a["kind"], self.box(old))
            case "take":
                return _taken(before, old, node, self._graph.constants.get(node.inputs[1]))
        return None

    def _joined(self, node: Node) -> Form | None:
        """The form of parts that go on along their axis with the same step."""
        at, axis = node.attributes["axis"], len(self._graph.shapes[node.output]) - 1 - node.attributes["axis"]
        forms, extents = zip(*((self.of(name), self._graph.shapes[name][at]) for name in node.inputs), strict=True)
        parts = [form.inside for form in forms if form is not None and not form.where]
        if len(parts) < max(2, len(forms)):
            return None
        rise, count = (parts[-1] - parts[0]).at(axis, Linear(0.0)).constant, sum(extents[:-1])
        if rise is None:
            return None
        whole = parts[0].at(axis, Linear(0.0)) + Linear.along(axis, rise / count)
        starts = np.cumsum([0, *extents[:-1]]).tolist()
        for part, extent, start in zip(parts, extents, starts, strict=True):
            place = Linear(start) + (Linear.along(axis) if extent > 1 else Linear(0.0))
            if part != whole.at(axis, place):
                return None
        return Form(whole)


def _of_constant(array: Array) -> Form | None:
    """The form of numbers with the same step along each axis, or of two that a diagonal of the last axes divides."""
    if not array.size or array.dtype.kind not in "biuf":
        return None
    values, whole = np.asarray(array, np.float64), Linear(float(array.reshape(-1)[0]))
    for axis, extent in enumerate(reversed(values.shape)):
        if extent > 1:
            whole += Linear.along(axis, float(np.take(values, 1, -1 - axis).reshape(-1)[0]) - whole.number)
    if np.array_equal(_grid(whole, values.shape), values):
        return Form(whole)
    rows = values.reshape(-1, *((1, 1, *values.shape)[-2:]))[0]
    changes = np.argwhere(rows[:, 1:] != rows[:, :-1])
    if not changes.size:
        return None
    row, column = (int(number) for number in changes[0])
    rest = Linear(row - column - 1.0) + Linear.along(0) - (Linear.along(1) if len(rows) > 1 else Linear(0.0))
    inside, outside = float(rows[row, column + 1]), float(rows[row, column])
    same = np.array_equal(np.where(_grid(rest, values.shape) >= 0, inside, outside), values)
    return Form(Linear(inside), Linear(outside), frozenset({rest})).upright if same else None


def _grid(whole: Linear, shape: Shape) -> Array:
    """The elements of a linear number that does not depend on the position."""
    places = np.indices(shape, sparse=True)[::-1]
    steps = [by * place for by, place in zip(whole.axes, places, strict=False)]
    return np.broadcast_to(whole.number + sum(steps, start=np.zeros(())), shape)


def _from(form: Form, axis: int, start: int) -> Form:
    """The form of what begins later along an axis."""
    return form.mapped(lambda part: part.at(axis, Linear.along(axis) + Linear(start)))


def _taken(form: Form, old: Shape, node: Node, table: Array | None) -> Form | None:
    """The form of a choice that repeats elements, or takes each axis from one place on."""
    shape, strides = node.attributes["shape"], node.attributes["strides"]
    if table is None or np.any(table < 0):
        return None
    own = {prod(old[axis + 1 :]): len(old) - 1 - axis for axis in reversed(range(len(old))) if old[axis] > 1}
    to = dict[int, int]()
    for at, (part, stride) in enumerate(zip(split_table(table, shape), strides, strict=True)):
        if not stride or not np.any(part):
            continue
        axis = own.get(stride)
        if axis is None or axis in to or np.any(np.diff(part) != 1) or part[-1] >= old[len(old) - 1 - axis]:
            return None
        form, to[axis] = _from(form, axis, int(part[0])), len(shape) - 1 - at
    for axis in {*range(len(old))} - {*to}:
        form = form.mapped(lambda part, axis=axis: part.at(axis, Linear(0.0)))  # type: ignore[misc]
    return form.moved(to)
