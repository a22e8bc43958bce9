"""Attention over a state that grows, in whatever steps an exporter writes it: `append` and `attend`
(`kernels/ir/cache.py`).

New rows go from the product that made them into the cache, turned on their way. softmax(scores of the cache's keys) by
its values reads the cache alone, and of it what the mask shows: a row sees the places up to its own, or the last of
these. What of the steps between the cache and the products does nothing to a visible place, such as repeated heads and
the guards of a padded axis, is looked through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernels.ir.activations import expression_of
from kernels.ir.expressions import LETTERS
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.links import producers
from kernels.ir.shapes import Shape
from kernels.passes.identities import eliminate_identities
from kernels.passes.rewrite import fresh, prune, rebuilt
from kernels.passes.rows.strided_looks import look_at, multiplied, place_of, reshaped, stride_of

from .angles import Turn, Turns
from .scores import Scores
from .visible import Forms

_PLAIN: dict[str, Any] = {"turned": 0, "by_place": True, "normed": False, "epsilon": 0.0}


def cached_attention(graph: Graph) -> Graph:
    """The graph with an `append` for each state that grows by a run's rows, and an `attend` for each attention."""
    if not graph.state or not any(node.op == "put_rows" for node in graph.nodes):
        return graph
    graph = eliminate_identities(graph)
    positions = {node.inputs[2] for node in graph.nodes if node.op == "put_rows"}
    if len(positions) != 1 or not positions < {*graph.inputs} or graph.shapes[position := positions.pop()] != (1,):
        return graph
    return _Cached(graph, position).rewritten()


@dataclass(frozen=True)
class _Rows:
    """Rows of heads where they lie in `base`, turned or not."""

    base: str
    place: tuple[int, ...]
    turn: Turn | None
    factor: float


class _Cached:
    """One walk over a graph."""

    def __init__(self, graph: Graph, position: str) -> None:
        self._graph, self._position, self._writers = graph, position, producers(graph)
        grown = next(node for node in graph.nodes if node.op == "put_rows")
        self._sequences, _, self._capacity, _ = graph.shapes[grown.output]
        self._rows = graph.shapes[grown.inputs[1]][2]
        last = max(0, self._capacity - self._rows)
        self._forms = Forms(graph, self._writers, position, last)
        self._turns = Turns(graph, self._writers, position, last)
        self._turned = {node.output: turn for node in graph.nodes if (turn := self._turns.of(node)) is not None}
        self._guards = {node.output: data for node in graph.nodes if (data := self._guarded(node))}
        """Tensors of which what lies behind the valid rows is covered -> what is covered."""
        passed = {name: turn.x for name, turn in self._turned.items()} | self._guards
        same = {name: Node(name, "reshape", (x,), (name,), {"shape": graph.shapes[x]}) for name, x in passed.items()}
        self._through: Mapping[str, Node] = {**self._writers, **same}
        self._shapes: dict[str, Shape] = {}
        self._constants: dict[str, Array] = {}
        self._caches: set[str] = set()
        self._ends = fresh(graph, f"{position}.newest")

    def rewritten(self) -> Graph:
        nodes, first = list[Node](), True
        for node in self._graph.nodes:
            found = self._append(node) if node.op == "put_rows" else None
            found = self._attend(node) if node.op == "matmul" else found
            if found and first:
                nodes, first = [*nodes, self._newest()], False
            nodes += found or [node]
        if first:
            return self._graph
        shapes = {**self._turns.shapes, **self._shapes}
        return prune(rebuilt(self._graph, nodes, constants=self._turns.constants | self._constants, shapes=shapes))

    def _newest(self) -> Node:
        """The place of the last row, in each sequence the same."""
        self._shapes[self._ends] = (self._sequences,)
        attributes = {"expression": ("add", "a", float(self._rows - 1))}
        if self._sequences == 1:
            return Node(self._ends, "map", (self._position,), (self._ends,), attributes)
        same = f"{self._ends}.rows"
        self._constants[same] = np.full(self._sequences, self._rows - 1, np.float32)
        return Node(self._ends, "map", (self._position, same), (self._ends,), {"expression": ("add", "a", "b")})

    # -- rows of heads -------------------------------------------------------------------------------------------------

    def _heads(self, name: str, heads: int, depth: int) -> _Rows | None:
        """The place of rows (sequences, heads, rows, depth) that may be turned; None where they do not lie in whole
        vectors."""
        return self._rows_of(name, heads, depth, self._through) or self._rows_of(name, heads, depth, self._writers)

    def _rows_of(self, name: str, heads: int, depth: int, writers: Mapping[str, Node]) -> _Rows | None:
        seen = look_at(self._graph, name, writers)
        axes = reshaped(seen.axes, (self._sequences, heads, self._rows, depth))
        place = place_of(replace(seen, axes=axes)) if axes is not None and depth % 4 == 0 else None
        passed = self._passed(name, seen.base) if place is not None and writers is self._through else []
        turns = [self._turned[each] for each in passed if each in self._turned]
        covered = any(each in self._guards for each in passed)
        if place is None or seen.unit or covered or len(turns) > 1:
            return None
        if turns and not self._is_by_row(turns[0], depth, place[3]):
            return None
        return _Rows(seen.base, place, turns[0] if turns else None, seen.factor)

    def _is_by_row(self, turn: Turn, depth: int, step: int) -> bool:
        """Return whether angles turn whole rows, and differ from row to row alone, which lie `step` elements apart."""
        seen, found = look_at(self._graph, turn.x, self._through), turn.turned % 8 == 0
        for name, _ in (turn.cosines, turn.sines):
            shape = self._graph.shapes[name]
            wide = [axis - len(shape) for axis, extent in enumerate(shape[:-1]) if extent > 1]
            steps = [stride_of(seen.axes[axis]) for axis in wide]
            found = found and steps == [step] * (self._rows > 1)
        return found and self._graph.shapes[turn.x][-1] == depth

    def _passed(self, name: str, base: str) -> list[str]:
        """The tensors on the way from one to what it looks at."""
        found = []
        while name != base:
            found.append(name)
            node = self._through[name]
            by = multiplied(self._graph, node) if node.op in ("mul", "map") else None
            name = by[0] if by is not None else node.inputs[0]
        return found

    def _turning(self, rows: _Rows) -> tuple[list[Node], tuple[str, ...], dict[str, Any]]:
        if rows.turn is None:
            return [], (), {}
        nodes, angles, by_place = self._turns.angles(rows.turn, self._rows)
        return nodes, angles, {"turned": rows.turn.turned, "by_place": by_place}

    def _append(self, node: Node) -> list[Node] | None:
        past, new, _ = node.inputs
        sequences, heads, capacity, depth = self._graph.shapes[node.output]
        own = sequences, self._graph.shapes[new][2], capacity
        sized = node.attributes["axis"] == 2 and own == (self._sequences, self._rows, self._capacity)
        rows = self._heads(new, heads, depth) if sized else None
        if rows is None or rows.factor != 1 or self._rows >= self._capacity:
            return None
        before, angles, attributes = self._turning(rows)
        self._caches.add(node.output)
        attributes = {**_PLAIN, "rows": self._rows, "place": rows.place, **attributes}
        inputs = (past, rows.base, self._ends, *angles)
        return [*before, replace(node, op="append", inputs=inputs, attributes=attributes)]

    # -- what is looked through ----------------------------------------------------------------------------------------

    def _guarded(self, node: Node) -> str:
        """The tensor of which a node covers what lies behind the valid rows along one axis; '': it does not."""
        match expression_of(node):
            case ("select", condition, str(data), _):
                form, name = self._forms.of_expression(condition, node), node.inputs[LETTERS.index(data)]
            case _:
                return ""
        is_same = self._graph.shapes[name] == self._graph.shapes[node.output]
        if not is_same or form is None or len(form.where) != 1 or form.inside.constant in (None, 0):
            return ""
        (rest,) = form.where
        by = [axis for axis in rest.axes if axis]
        behind = rest.position == 1 and by == [-1] and rest.number >= self._rows - 1
        return name if behind and form.outside.constant == 0 else ""

    def _along_keys(self, name: str, base: str) -> bool:
        """Return whether what is covered between a tensor and a cache is covered along the cache's places."""
        depth = self._graph.shapes[base][3]
        for each in self._passed(name, base):
            if each in self._guards:
                node = self._writers[each]
                form = self._forms.of_expression(node.attributes["expression"][1], node)
                axis = -max((len(rest.axes) for rest in form.where), default=1) if form else -1
                seen = look_at(self._graph, self._guards[each], self._through)
                extent = self._graph.shapes[each][axis]
                if extent != self._capacity or stride_of(seen.axes[axis]) != depth:
                    return False
        return True

    def _cache(self, name: str, heads: int, *, turned: bool) -> tuple[str, float] | None:
        """The cache of which a tensor (sequences, heads, places, depth), or with the last two turned, has each head as
        often as queries share it; and the factor of it."""
        seen = look_at(self._graph, name, self._through)
        if seen.base not in self._caches or seen.start or seen.unit:
            return None
        _, shared, capacity, depth = self._graph.shapes[seen.base]
        last = (depth, capacity) if turned else (capacity, depth)
        sizes = (self._sequences, shared, heads // shared, *last)
        axes = reshaped(seen.axes, sizes) if heads % shared == 0 else None
        if axes is None or not self._along_keys(name, seen.base):
            return None
        natural = (shared * capacity * depth, capacity * depth, 0, *((1, depth) if turned else (depth, 1)))
        fits = all(n == 1 or stride_of(each) == s for n, each, s in zip(sizes, axes, natural, strict=True))
        is_plain = not any(each in self._turned for each in self._passed(name, seen.base))
        return (seen.base, seen.factor) if fits and is_plain else None

    # -- attention -----------------------------------------------------------------------------------------------------

    def _attend(self, product: Node) -> list[Node] | None:
        graph = self._graph
        *lead, rows, places = graph.shapes[product.inputs[0]]
        if (rows, places) != (self._rows, self._capacity):
            return None
        heads, softmax = int(np.prod(lead)) // self._sequences, self._softmax(product.inputs[0])
        scores = Scores(graph, self._writers, self._forms) if softmax is not None else None
        first = scores.read(softmax.inputs[0]) if scores is not None and softmax is not None else None
        visible = scores.visible(rows, self._capacity) if scores is not None else None
        if first is None or scores is None or visible is None or not self._shows_all(product.inputs[0], scores):
            return None
        depth = graph.shapes[first.inputs[0]][-1]
        queries = self._heads(first.inputs[0], heads, depth)
        keys = self._cache(first.inputs[1], heads, turned=True)
        values = self._cache(product.inputs[1], heads, turned=False)
        if queries is None or keys is None or values is None or values[1] != 1:
            return None
        before, angles, turning = self._turning(queries)
        attributes = {**_PLAIN, "rows": rows, "place": queries.place, **turning, "heads": heads, "window": visible}
        attributes |= {"scale": scores.factor * queries.factor * keys[1], "softcap": scores.softcap}
        columns = graph.shapes[values[0]][3]
        flat, apart = (fresh(graph, f"{product.output}.{word}") for word in ("attended", "rows"))
        turned = fresh(graph, f"{product.output}.heads")
        texts = self._sequences
        self._shapes |= {flat: (texts, rows, heads * columns), apart: (texts, rows, heads, columns)}
        self._shapes[turned] = (texts, heads, rows, columns)
        inputs = (queries.base, keys[0], values[0], self._ends, *angles)
        shape = graph.shapes[product.output]
        return [
            *before,
            Node(product.name, "attend", inputs, (flat,), attributes),
            Node(product.name, "reshape", (flat,), (apart,), {"shape": self._shapes[apart]}),
            Node(product.name, "transpose", (apart,), (turned,), {"perm": (0, 2, 1, 3)}),
            Node(product.name, "reshape", (turned,), product.outputs, {"shape": shape}),
        ]

    def _softmax(self, name: str) -> Node | None:
        """The softmax whose result weights are, but for what is covered of it."""
        while (node := self._writers.get(name)) is not None and node.op != "softmax":
            data = self._data(node)
            if data is None or self._graph.shapes[data][-2:] != self._graph.shapes[name][-2:]:
                return None
            name = data
        last = len(self._graph.shapes[name]) - 1
        return node if node is not None and node.attributes["axis"] == last else None

    def _data(self, node: Node) -> str | None:
        """The operand that a reshape or a choice passes on."""
        if node.op == "reshape":
            return node.inputs[0]
        match expression_of(node):
            case ("select", condition, a, b):
                form = self._forms.of_expression(condition, node)
            case _:
                return None
        if form is None or form.number is not None:
            chosen = None if form is None else a if form.number else b
        else:
            chosen = a if form.inside.constant else b
        return node.inputs[LETTERS.index(chosen)] if isinstance(chosen, str) else None

    def _shows_all(self, name: str, scores: Scores) -> bool:
        """Return whether the weights of all visible places are kept: of the others they are 0."""
        while (node := self._writers[name]).op != "softmax":
            expression = expression_of(node)
            if node.op == "map" and isinstance(expression, tuple):
                form = self._forms.of_expression(expression[1], node)
                if form is not None and form.where and not (form.inside.constant and scores.implies(form.where)):
                    return False
            name = self._data(node) or ""
        return True
