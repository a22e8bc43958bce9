"""Layers side by side become one, and poolings end in what follows them: the same results, by fewer steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options, Precision
from kernels.passes import prepare
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, generator, inputs_of, relative_error, side_by_side

from .test_agreement import check

DRAWS = 40
SIGNS = (("add", "a", "b"), ("add", "b", "a"), ("sub", "a", "b"), ("sub", "b", "a"))


def _sum(build: Builder, a: str, b: str, sign: int) -> str:
    shape = build.graph.shapes[a]
    return build.node("map", [a, b], shape, expression=SIGNS[sign]) if sign else build.node("add", [a, b], shape)


def _branches(rng: np.random.Generator) -> Graph:
    """Two to four layers of one tensor, their windows around one pixel, dilated alike; scaled, and added to x."""
    build = Builder(rng)
    each, groups = int(rng.integers(1, 4)), int(rng.choice([1, 2, 5]))
    c, gap, depthwise = each * groups, int(rng.integers(1, 3)), bool(rng.integers(2))
    x = build.input(int(rng.integers(1, 3)), c, 9, 8)
    groups = c if depthwise else groups
    widest = int(rng.choice([1, 3, 5]))

    def branch() -> str:
        kind = int(rng.integers(3))
        if kind == 0:
            return build.node("affine", [x, build.constant(c), build.constant(c)], build.graph.shapes[x])
        size = int(rng.choice([1, widest]))
        pad = size // 2 * gap
        return build.conv(x, c, (size, size), pads=(pad,) * 4, dilations=(gap, gap), groups=groups, bias=kind > 1)

    total = build.conv(x, c, (widest, 1), pads=(widest // 2, 0) * 2, groups=groups)
    for _ in range(int(rng.integers(1, 4))):
        total = _sum(build, total, branch(), int(rng.integers(len(SIGNS))))
    scaled = build.node("mul", [total, build.constant(c, 1, 1)], build.graph.shapes[x])
    return build.outputs(build.node("add", [x, scaled], build.graph.shapes[x]))


def test_a_sum_of_branches_means_the_same(seed: int) -> None:
    """Many joins of any windows; at least half of the draws have fewer nodes, and none more than it had."""
    fewer = 0
    for draw in range(DRAWS):
        graph = _branches(np.random.default_rng([seed, draw]))
        inputs = {name: x.astype(np.float64) for name, x in inputs_of(graph).items()}
        joined, apart = (prepare(graph, Options("cpu", fuse=fuse)) for fuse in ("all", "normalisation+elementwise"))
        fewer += len(joined.nodes) < len(apart.nodes)
        (name,) = graph.outputs
        error = relative_error(evaluate(joined, inputs)[name], evaluate(graph, inputs)[name])
        assert error <= 1e-6, (draw, joined.nodes)
    assert fewer >= DRAWS // 2


@pytest.mark.parametrize("changed", ["strides", "read twice", "another tensor", "activation", "an output"])
def test_what_is_no_sum_of_branches_is_left(changed: str) -> None:
    build = Builder()
    x, y = build.input(1, 4, 6, 6), build.input(1, 4, 6, 6, name="y")
    strides = (2, 2) if changed == "strides" else (1, 1)
    one = build.conv(x, 4, (3, 3), strides, (1, 1, 1, 1))
    other = build.conv(
        y if changed == "another tensor" else x, 4, (1, 1), activation=("relu",) if changed == "activation" else ()
    )
    if changed == "strides":
        other = build.conv(x, 4, (2, 2), (2, 2))
        graph = build.outputs(build.node("add", [one, other], (1, 4, 3, 3)))
        assert sum(node.op == "conv" for node in prepare(graph, Options("cpu")).nodes) == 1  # windows of one stride
        return
    total = build.node("add", [one, other], (1, 4, 6, 6))
    ends = {"read twice": [build.node("relu", [other], (1, 4, 6, 6))], "an output": [other]}
    graph = build.outputs(total, *ends.get(changed, []))
    assert sum(node.op == "conv" for node in prepare(graph, Options("cpu")).nodes) == 2


def _mixer(rng: np.random.Generator, *, largest: bool) -> Graph:
    """A pooling of x, and what is computed of it, x, another tensor, vectors and numbers."""
    build = Builder(rng)
    _, c, h, w = shape = (int(rng.integers(1, 3)), int(rng.integers(1, 11)), int(rng.integers(3, 8)), 7)
    x, y = build.input(*shape), build.input(*shape, name="y")
    pool = {"kernel": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1)} | (
        {} if largest else {"count_include_pad": int(rng.integers(2))}
    )
    pooled = build.node("max_pool" if largest else "average_pool", [x], shape, **pool)
    apart = build.node("map", [pooled, x], shape, expression=("sub", "a", "b"))
    vector = [(c, 1, 1), (1, c, 1, 1), (1, c, h, w), shape][int(rng.integers(4))]
    scaled = build.node("map", [apart, build.constant(*vector)], shape, expression=("mul", "a", "b"))
    mixed = build.node("add", [y, scaled], shape)
    return build.outputs(build.node("map", [mixed], shape, expression=("add", ("tanh", "a"), 0.5)))


@pytest.mark.parametrize(("api", "precision"), [("opencl", "fp32"), ("opencl", "fp16"), ("vulkan", "fp32")])
def test_a_mixer_by_pooling_is_one_step(agent: Agent, api: Backend, precision: Precision, shaders: Path) -> None:
    rng = generator(7)
    graph = side_by_side({f"mixer{draw}": _mixer(rng, largest=draw == 3) for draw in range(4)})
    plan = check(agent, graph, Options(api, precision), Limits(), shaders)
    kernels = [program.kernel for program in plan.programs]
    assert not [name for name in kernels if name.startswith(("map", "binary"))]
    assert sum(step.kind == "dispatch" and step.program.startswith("pool_") for step in plan.steps) == 4
