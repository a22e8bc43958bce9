"""The way of a decoder's scores from their product to their softmax."""

from __future__ import annotations

from collections.abc import Mapping

from kernels.ir.activations import expression_of
from kernels.ir.expressions import LETTERS, Expression
from kernels.ir.graph import Graph, Node

from .forms import Form, Linear
from .visible import Forms

_NEVER = -9999.0
"""A score to which as little is added is one of a place that is not seen."""


class Scores:
    """The factor and the soft cap of scores before their softmax, and which places they show."""

    def __init__(self, graph: Graph, writers: Mapping[str, Node], forms: Forms) -> None:
        self._graph, self._writers, self._forms = graph, writers, forms
        self.factor, self.softcap = 1.0, 0.0
        self._seen: set[Linear] = set()
        self._shape: tuple[int, ...] = ()
        self._known: list[Linear] = []
        """Inequalities that hold of every place that is seen: no later than the row's own, and in its window."""

    def read(self, name: str) -> Node | None:
        """The product that the scores are, its second operand turned; None where something else is done to them."""
        self._shape = self._graph.shapes[name][-2:]
        while (node := self._writers.get(name)) is not None and node.op != "matmul":
            if node.op == "reshape":
                name = node.inputs[0]
            else:
                expression = expression_of(node)
                found = self._peeled(expression, node) if expression is not None else None
                if found is None:
                    return None
                name = found
            if self._graph.shapes[name][-2:] != self._shape:
                return None
        return node

    def _peeled(self, expression: Expression, node: Node) -> str | None:
        """The operand that is the scores in a function of scores and masks."""
        if isinstance(expression, str):
            return node.inputs[LETTERS.index(expression)]
        match expression:
            case ("select", condition, a, b):
                form = self._forms.of_expression(condition, node)
                inside = form.inside.constant if form is not None else None
                if form is None or inside is None:
                    return None
                scores, low = (a, b) if inside else (b, a)
                if form.where and not self._hides(self._forms.of_expression(low, node)):
                    return None
                self._seen |= form.where
                return self._peeled(scores, node)
            case ("add", a, b):
                for scores, mask in ((a, b), (b, a)):
                    form = self._forms.of_expression(mask, node)
                    if form is not None and form.inside.constant is not None:
                        shifts = bool(self.softcap and form.inside.number)
                        if shifts or (form.where and not self._hides(Form(form.outside - form.inside))):
                            return None
                        self._seen |= form.where
                        return self._peeled(scores, node)
            case ("mul" | "div" as function, a, b):
                for scores, number in ((a, b), (b, a))[: 1 if function == "div" else 2]:
                    form = self._forms.of_expression(number, node)
                    by = form.number if form is not None else None
                    if by is not None and by > 0:
                        self.factor *= by if function == "mul" else 1 / by
                        return self._peeled(scores, node)
            case ("tanh", a) if not self.softcap:
                self.softcap = self.factor
                return self._peeled(a, node)
        return None

    def _hides(self, form: Form | None) -> bool:
        """Return whether a number, added or in their place, takes scores away."""
        number = form.number if form is not None else None
        return number is not None and not self.softcap and number * self.factor <= _NEVER

    def visible(self, rows: int, capacity: int) -> int | None:
        """The number of places, up to its own, that a row sees; 0: all of them. None: it sees others."""
        own = Linear(0.0, 1.0) - Linear.along(0) + (Linear.along(1) if rows > 1 else Linear(0.0))
        if own not in self._seen:
            return None
        back = own.times(-1)
        sizes = [(rest - back).constant for rest in self._seen]
        windows = [int(size) + 1 for size in sizes if size is not None and size >= 0]
        self._known = [own, *([back + Linear(min(windows) - 1.0)] if windows else [])]
        if not self.implies(frozenset(self._seen)):
            return None
        return min(windows) if windows and min(windows) < capacity else 0

    def implies(self, where: frozenset[Linear]) -> bool:
        """Return whether all of these hold where a place is seen."""
        box = self._forms.box(self._shape)
        return all(any((rest - each).ends(box)[0] >= 0 for each in self._known) for rest in where)
