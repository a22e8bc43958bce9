"""Steps of more work-groups along an axis than Vulkan promises to take, through the agent."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import TOLERANCE, Builder, inputs_of, relative_error, some

MANY = 70_001
"""More than 65535."""


def _flat(*shape: int) -> Graph:
    build = Builder()
    return build.outputs(build.node("relu", [build.input(*shape)], shape))


def _vectors() -> Graph:
    build = Builder()
    return build.outputs(build.node("relu", [build.input(1, 4 * MANY + 1)], (1, 4 * MANY + 1)))


def _pictures() -> Graph:
    build = Builder()
    x = build.input(MANY, 6)
    shares = build.node("softmax", [x], (MANY, 6), axis=1)
    return build.outputs(build.node("concat", [shares, x], (MANY, 12), axis=1))


def _rows() -> Graph:
    build = Builder()
    x = build.input(1, MANY, 5)
    left = build.node("slice", [x], (1, MANY, 3), axis=2, start=1, stop=4)
    return build.outputs(build.node("concat", [x, left], (1, MANY, 8), axis=2))


def _planes() -> Graph:
    build = Builder()
    return build.outputs(build.node("transpose", [build.input(MANY, 3, 5)], (MANY, 5, 3), perm=(0, 2, 1)))


def _matrices() -> Graph:
    build = Builder()
    x, y = build.input(MANY, 2, 3), build.input(MANY, 3, 5, name="y")
    return build.outputs(build.node("matmul", [x, y], (MANY, 2, 5)))


GRAPHS = {
    "rank 3": _flat(3, MANY, 20), "rank 5": _flat(2, 3, 5, 7, 1402), "vectors": _vectors(), "pictures": _pictures(),
    "rows": _rows(), "planes": _planes(), "matrices": _matrices(),
}  # fmt: skip


@pytest.mark.parametrize(("backend", "name"), [*product(["vulkan"], GRAPHS), *product(["opencl"], some(GRAPHS, 3))])
def test_as_many_work_groups_as_a_tensor_needs(agent: Agent, backend: str, name: str, shaders: Path) -> None:
    sharing_memory = {"planes": {"transpose": "tiled"}, "matrices": {"product": "blocked"}}.get(name, {})
    graph, options = GRAPHS[name], Options(backend, "fp16", **sharing_memory)  # type: ignore[arg-type]
    bundle = compile_graph(graph, options, Limits(), spirv_cache=shaders)
    inputs = inputs_of(graph)
    ended = agent.run(bundle, inputs, "--warmup", 0, "--samples", 1)
    assert ended.code == 0, ended.events[-1]
    wanted = evaluate(graph, inputs)
    for i, port in enumerate(bundle.plan.outputs):
        assert relative_error(ended.output(i).reshape(port.shape), wanted[port.name]) <= TOLERANCE["fp16"]
