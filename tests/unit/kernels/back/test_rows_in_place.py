"""Rows stay where they are: random moves around what works row by row mean the same as before."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from kernels.ir.check import check_graph
from kernels.ir.graph import Graph
from kernels.options import Options
from kernels.passes import prepare
from kernels.passes.rows import compose_moves, rows_in_place
from kernels.passes.rows.rows_in_place import keep_rows
from kernels.reference import evaluate

from .graphs import Builder, generator
from .rows import grids, permuted, windows

WIDTH = 4


def moved(build: Builder, x: str, rng: np.random.Generator) -> str:
    """A tensor of four axes, moved by one random step; now and then rows fall apart."""
    shape = build.graph.shapes[x]
    perm = tuple(int(axis) for axis in rng.permutation(4))
    axis = int(rng.integers(3))
    match rng.choice(
        ["rows", "any", "taken", "rolled", "cut", "split", "padded", "twice"], p=[0.2, *[0.12] * 5, 0.1, 0.1]
    ):
        case "rows":
            perm = (*(each for each in perm if each != 3), 3)
            return build.node("transpose", [x], tuple(shape[each] for each in perm), perm=perm)
        case "any":
            return build.node("transpose", [x], tuple(shape[each] for each in perm), perm=perm)
        case "taken":
            return permuted(build, x, perm)
        case "rolled" if shape[axis] > 1:
            return rolled(build, x, axis, int(rng.integers(1, shape[axis])))
        case "cut" if shape[1] % 2 == 0 and shape[2] % 2 == 0:
            return cut(build, x, rng)
        case "split" if shape[axis] > 1:
            start = int(rng.integers(1, shape[axis]))
            found = tuple(extent - start if each == axis else extent for each, extent in enumerate(shape))
            return build.node("slice", [x], found, axis=axis, start=start, stop=shape[axis])
        case "padded":
            found = (shape[0], shape[1], shape[2] + 1, shape[3])
            return build.node("pad", [x], found, pads=(1, 0, 0, 0), mode="constant", value=0.0)
        case "twice" if prod(shape) < 4000:
            found = tuple(2 * extent if each == axis else extent for each, extent in enumerate(shape))
            return build.node("concat", [x, x], found, axis=axis)
        case _:
            return x


def cut(build: Builder, x: str, rng: np.random.Generator) -> str:
    """Squares of the second and third axis, or grids, behind each other."""
    n, h, w, c = build.graph.shapes[x]
    apart = (n, h // 2, 2, w // 2, 2, c) if rng.integers(2) else (n, 2, h // 2, 2, w // 2, c)
    y = permuted(build, build.node("reshape", [x], apart, shape=apart), (0, 1, 3, 2, 4, 5))
    found = (n * apart[1] * apart[3], apart[2], apart[4], c)
    return build.node("reshape", [y], found, shape=found)


def rolled(build: Builder, x: str, axis: int, by: int) -> str:
    shape = build.graph.shapes[x]
    parts = []
    for start, stop in ((by, shape[axis]), (0, by)):
        part = tuple(stop - start if k == axis else extent for k, extent in enumerate(shape))
        parts.append(build.node("slice", [x], part, axis=axis, start=start, stop=stop))
    return build.node("concat", parts, shape, axis=axis)


def computed(build: Builder, x: str, rng: np.random.Generator, others: list[str]) -> str:
    """Something of each row, or of each element with another tensor of this shape."""
    shape = build.graph.shapes[x]
    same = [name for name in others if build.graph.shapes[name] == shape]
    match rng.integers(4):
        case 0 if shape[-1] == WIDTH:
            flat = build.node("reshape", [x], (prod(shape[:-1]), WIDTH), shape=(prod(shape[:-1]), WIDTH))
            y = build.node("dense", [flat, build.constant(WIDTH, WIDTH)], (prod(shape[:-1]), WIDTH))
            return build.node("reshape", [y], shape, shape=shape)
        case 1 if same:
            return build.node("add", [x, same[int(rng.integers(len(same)))]], shape)
        case 2:
            return build.node("add", [x, build.constant(shape[-1])], shape)
        case _:
            return build.node("map", [x], shape, expression=("mul", "a", 0.5))


def some_graph(rng: np.random.Generator) -> Graph:
    build = Builder(rng)
    x = build.input(*(int(extent) for extent in rng.choice([1, 2, 3, 4, 8], 3)), WIDTH)
    if rng.integers(2):  # what lies in stacks of channels
        n, _, h, w = (int(extent) for extent in rng.choice([1, 2, 3, 4, 8], 4))
        build = Builder(rng)
        x = build.conv(build.input(n, 3, h, w), WIDTH, (1, 1))
    every = [x]
    for _ in range(int(rng.integers(4, 20))):
        x = moved(build, x, rng) if rng.integers(2) else computed(build, x, rng, every)
        every.append(x)
    shape = build.graph.shapes[x]
    y = build.node("transpose", [x], (*shape[:2], shape[3], shape[2]), perm=(0, 1, 3, 2))
    y = build.node("matmul", [x, y], (*shape[:3], shape[2]))
    return build.outputs(y, *dict.fromkeys([every[len(every) // 2], x]))


@pytest.mark.parametrize("salt", range(60))
def test_random_moves_mean_the_same(salt: int) -> None:
    """They do also where it does not pay to leave rows where they are."""
    rng = generator(salt)
    graph = some_graph(rng)
    inputs = {name: rng.standard_normal(graph.shapes[name]).astype(np.float32) for name in graph.inputs}
    wanted = evaluate(graph, inputs)
    for changed in (rows_in_place(compose_moves(graph)), keep_rows(graph)):
        check_graph(changed)
        found = evaluate(changed, inputs)
        for name in graph.outputs:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4, atol=1e-4)


def test_windows_cost_no_copies() -> None:
    assert not _copies(windows(2, 6, 3, 2, 8))
    assert not _copies(windows(1, 8, 4, 3, 16, rolled=2))
    assert not _copies(windows(1, 8, 4, 2, 8, rolled=1, cosine=True))
    assert _copies(grids(1, 6, 3, 2, 8)) == ["transpose", "transpose"], "from a picture to rows and back"
    assert {node.op for node in prepare(windows(1, 6, 3, 2, 8), Options("cpu")).nodes} >= {"softmax", "transpose"}


def test_rows_that_somebody_else_reads_are_moved() -> None:
    """The rows of windows themselves are a result."""
    graph = windows(1, 6, 3, 2, 8)
    turned = next(node.output for node in graph.nodes if node.op == "transpose")
    ops = _copies(replace(graph, outputs=(*graph.outputs, turned)))
    assert len(ops) == 1


def _copies(graph: Graph) -> list[str]:
    ops = [node.op for node in prepare(graph, Options("opencl")).nodes]
    return [op for op in ops if op in ("transpose", "take", "slice", "concat", "softmax", "add", "map")]
