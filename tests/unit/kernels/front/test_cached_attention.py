"""Attention over a cache in drawn steps: it becomes `attend` where its mask shows places up to a row's own, or the last
of these; whatever becomes of it, it computes the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from kernels.ir.expressions import Expression
from kernels.ir.graph import Array, Graph, Node
from kernels.ir.shapes import output_shape
from kernels.passes.rows.decoders import few_steps, places
from kernels.passes.rows.decoders.visible import Forms
from kernels.reference import evaluate

DRAWS = 24
SEEN = {
    "causal": lambda own, place: place <= own,
    "window": lambda own, place: (place <= own) & (place > own - 3),
    "earlier": lambda own, place: (place < own) | (place == 0),
    "ahead": lambda own, place: place <= own + 1,
    "every second": lambda own, place: (place <= own) & ((own - place) % 2 == 0),
}
"""The places that a row sees, by its own; the first two are what `attend` computes."""


@dataclass
class Steps:
    """Writes a graph of drawn steps."""

    rng: np.random.Generator
    nodes: list[Node] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)

    def either(self) -> bool:
        return bool(self.rng.random() < 0.5)

    def input(self, name: str, *shape: int) -> str:
        self.shapes[name] = shape
        return name

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array, np.float32)
        self.shapes[name] = self.constants[name].shape
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        node = Node(name := f"{op}{len(self.nodes)}", op, inputs, (name,), attributes)
        self.shapes[name] = output_shape(node, self.shapes)
        self.nodes.append(node)
        return name

    def map(self, expression: Expression, *inputs: str) -> str:
        return self.add("map", *inputs, expression=expression)

    def reshape(self, x: str, *shape: int) -> str:
        return self.add("reshape", x, shape=shape)

    # -- in one of several ways ----------------------------------------------------------------------------------------

    def no_less(self, a: str, b: str) -> str:
        """Return whether a >= b, of whole numbers."""
        ways: list[tuple[Expression, tuple[str, str]]] = [
            (("max", ("less", "a", "b"), ("equal", "a", "b")), (b, a)),
            (("less", "a", ("add", "b", 1.0)), (b, a)),
            (("sub", 1.0, ("less", "a", "b")), (a, b)),
            (("equal", ("less", "a", "b"), 0.0), (a, b)),
        ]
        expression, operands = ways[int(self.rng.integers(len(ways)))]
        return self.map(expression, *operands)

    def both(self, a: str, b: str) -> str:
        ways: list[Expression] = [("mul", "a", "b"), ("min", "a", "b"), ("select", "a", "b", 0.0)]
        ways.append(("sub", 1.0, ("max", ("equal", "a", 0.0), ("equal", "b", 0.0))))
        return self.map(ways[int(self.rng.integers(len(ways)))], a, b)

    def own_places(self, rows: int) -> str:
        """The places of a run's rows, (rows, 1)."""
        if self.either():
            return self.map(("add", "a", "b"), "position", self.constant(np.arange(rows)[:, None]))
        ends = [self.map(("add", "a", float(row)), "position") if row else "position" for row in range(rows)]
        return self.reshape(self.add("concat", *ends, axis=0) if rows > 1 else ends[0], rows, 1)

    def mask(self, kind: str, rows: int, capacity: int) -> str:
        """The truth of what is seen, (rows, capacity)."""
        own, places = self.own_places(rows), self.constant(np.arange(capacity)[None])
        if self.either():
            own, places = (self.map(("mul", "a", 1.0), self.reshape(x, *self.shapes[x])) for x in (own, places))
        if kind == "earlier":
            first = self.constant((np.arange(capacity) == 0)[None])
            return self.map(("max", ("less", "a", "b"), "c"), places, own, first)
        if kind == "ahead":
            return self.no_less(self.map(("add", "a", 1.0), own), places)
        seen = self.no_less(own, places)
        if kind == "window":
            near = self.no_less(places, self.map(("sub", "a", 2.0), own))
            return self.both(near, seen) if self.either() else self.both(seen, near)
        if kind == "every second":
            apart = self.map(("mul", ("sub", "a", "b"), 0.5), own, places)
            return self.map(("mul", "a", ("equal", ("floor", "b"), "b")), seen, apart)
        return seen

    def turned(self, x: str, angles: str) -> str:
        """Rows (1, heads, rows, size), turned by their places, or nearly so."""
        half, shape = self.shapes[x][3] // 2, self.shapes[x]
        if self.rng.random() < 0.1:  # by other angles in each head
            angles = self.map(("mul", "a", "b"), angles, self.constant(self.rng.uniform(1, 2, (1, shape[1], 1, 1))))
        cos, sin = (self.map((function, "a"), angles) for function in ("cos", "sin"))
        if self.rng.random() < 0.1:  # the other way round
            sin = self.map(("neg", "a"), sin)
        if self.rng.random() < 0.1:  # sheared
            cos = self.map(("add", "a", 0.5), cos)
        if self.rng.random() < 0.1:  # of which half are reflected
            x = self.add("concat", self.add("slice", x, axis=3, start=half, stop=2 * half), x, axis=3)
            x = self.add("slice", x, axis=3, start=0, stop=2 * half)
        a, b = (self.add("slice", x, axis=3, start=n * half, stop=(n + 1) * half) for n in (0, 1))
        if self.either():  # by halves
            first = self.map(("sub", ("mul", "a", "b"), ("mul", "c", "d")), a, cos, b, sin)
            if self.either():
                parts = [self.map(("mul", "a", "b"), *pair) for pair in ((a, cos), (b, sin))]
                first = self.map(("sub", "a", "b"), *parts)
            parts = [self.map(("mul", "a", "b"), *pair) for pair in ((b, cos), (a, sin))]
            return self.add("concat", first, self.map(("add", "a", "b"), *parts), axis=3)
        cos, sin = (self.add("concat", each, each, axis=len(self.shapes[each]) - 1) for each in (cos, sin))
        crossed = self.add("concat", self.map(("neg", "a"), b), a, axis=3)
        products = [self.map(("mul", "a", "b"), *pair) for pair in ((x, cos), (crossed, sin))]
        assert self.shapes[products[0]] == shape
        return self.add("add", *(products if self.either() else products[::-1]))


def attention(rng: np.random.Generator, kind: str) -> tuple[Graph, dict[str, int]]:
    """One attention over a cache of keys and values; what is in its products is as it comes from dense layers."""
    s = Steps(rng)
    shared, groups, rows = (int(number) for number in rng.integers(1, (3, 4, 5)))
    size, capacity = int(rng.choice([8, 16])), int(rng.integers(rows + 1, 12))
    heads, scale = shared * groups, float(rng.uniform(0.2, 0.6))
    s.input("position", 1)
    x, pasts = s.input("x", rows, 16), [s.input(f"past.{word}", 1, shared, capacity, size) for word in ("k", "v")]
    parts = []
    for count in (heads, shared, shared):
        product = s.add("dense", x, s.constant(rng.standard_normal((16, count * size))))
        parts.append(s.add("transpose", s.reshape(product, 1, rows, count, size), perm=(0, 2, 1, 3)))
    turns = s.constant(rng.uniform(0.1, 2, size // 2))
    angles = s.reshape(s.map(("mul", "a", "b"), s.own_places(rows), turns), 1, 1, rows, size // 2)
    query, key = s.turned(parts[0], angles), s.turned(parts[1], angles)
    caches = [
        s.add("put_rows", past, new, "position", axis=2) for past, new in zip(pasts, (key, parts[2]), strict=True)
    ]
    every = s.constant(np.arange(capacity).reshape(1, 1, capacity, 1))
    end = s.map(("add", "a", float(rows)), "position")
    wide = []
    for cache in caches:
        guarded = s.map(("select", ("less", "a", "b"), "c", 0.0), every, end, cache) if s.either() else cache
        own = np.concatenate([np.zeros(1), np.repeat(np.arange(shared), groups), np.arange(capacity), np.arange(size)])
        strides = (0, capacity * size, size, 1)
        spread = s.add(
            "take", guarded, s.constant(own), shape=(1, heads, capacity, size), strides=strides, value=0.0
        ) if groups > 1 else guarded  # fmt: skip
        wide.append(spread)
    if shared > 1 and groups > 1:  # repeated as exporters do: an axis more
        wide = []
        for cache in caches:
            axes = [np.zeros(1), np.arange(shared), np.zeros(groups), np.arange(capacity), np.arange(size)]
            apart = s.add(
                "take", cache, s.constant(np.concatenate(axes)), shape=(1, shared, groups, capacity, size),
                strides=(0, capacity * size, 0, size, 1), value=0.0,
            )  # fmt: skip
            wide.append(s.reshape(apart, 1, heads, capacity, size))
    query = s.map(("mul", "a", scale), query)
    if s.either():
        query, wide[0] = (s.map(("mul", "a", 1.5), each) for each in (query, wide[0]))
    scores = s.add("matmul", query, s.add("transpose", wide[0], perm=(0, 1, 3, 2)))
    if s.either():
        scores = s.map(("mul", ("tanh", ("div", "a", 2.0)), 2.0), scores)
    seen = s.reshape(s.mask(kind, rows, capacity), 1, 1, rows, capacity)
    low = float(rng.choice([-3e38, -1e9, -6e4]))
    if s.either():
        scores = s.map(("select", "a", "b", low), seen, scores)
    else:
        scores = s.map(("add", "a", "b"), s.map(("select", "a", 0.0, low), seen), scores)
    scores = s.map(("select", ("less", "a", "b"), "c", low), s.reshape(every, 1, 1, 1, capacity), end, scores)
    weights = s.add("softmax", scores, axis=3)
    if s.either():
        weights = s.map(("select", ("sub", 1.0, ("equal", "a", "a")), 0.0, "a"), weights)
    found = s.add("transpose", s.add("matmul", weights, wide[1]), perm=(0, 2, 1, 3))
    result = s.reshape(found, rows, heads * size)
    graph = Graph(
        "attention", ("position", "x", *pasts), (result, *caches), s.nodes, s.shapes, s.constants,
        types={"position": "i64"}, state=dict(zip(pasts, caches, strict=True)),
    )  # fmt: skip
    return graph, {"rows": rows, "capacity": capacity}


@pytest.mark.parametrize("kind", SEEN)
def test_a_drawn_attention_computes_the_same(seed: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its angles lie in tables, or are computed in each run where there would be too many."""
    rng = np.random.default_rng([seed, len(kind)])
    for draw in range(DRAWS):
        graph, sizes = attention(rng, kind)
        with monkeypatch.context() as patch:
            if draw % 3 == 0:
                patch.setattr(places, "_MOST", 0)
            few = few_steps(graph)
        attends = [node for node in few.nodes if node.op == "attend"]
        if kind in ("causal", "window"):
            assert len(attends) == 1
            assert not {"softmax", "put_rows"} & {node.op for node in few.nodes}
        elif sizes["capacity"] > 3 and (kind != "ahead" or sizes["rows"] > 1):
            assert not attends
        position = int(rng.integers(0, sizes["capacity"] - sizes["rows"] + 1))
        given: dict[str, Array] = {"position": np.array([position])}
        given |= {name: rng.standard_normal(graph.shapes[name]) for name in graph.inputs[1:]}
        wanted, found = evaluate(graph, given), evaluate(few, given)
        for name in graph.outputs:
            np.testing.assert_allclose(found[name], wanted[name], atol=1e-3)


def test_a_form_is_what_a_mask_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(DRAWS):
        for kind, sees in SEEN.items():
            s = Steps(rng)
            s.input("position", 1)
            rows, capacity = int(rng.integers(1, 6)), int(rng.integers(6, 12))
            mask = s.mask(kind, rows, capacity)
            graph = Graph("m", ("position",), (mask,), s.nodes, s.shapes, s.constants, types={"position": "i64"})
            form = Forms(graph, {node.output: node for node in s.nodes}, "position", capacity - rows).of(mask)
            assert (form is not None) == (kind != "every second"), kind
            position = int(rng.integers(0, capacity - rows + 1))
            row, place = np.indices((rows, capacity))
            truth = np.broadcast_to(sees(position + row, place), (rows, capacity))
            given: dict[str, Array] = {"position": np.array([position])}  # type: ignore[dict-item]
            assert np.array_equal(evaluate(graph, given)[mask] != 0, truth)
            if form is not None:
                held = [
                    each.number + each.position * position + each.by(0) * place + each.by(1) * row >= 0
                    for each in form.where
                ]
                inside = np.logical_and.reduce(held) if held else np.ones_like(truth)
                values = np.where(inside, form.inside.constant, form.outside.constant)
                assert np.array_equal(values != 0, truth), kind
