"""Sums of many numbers keep their bits: each backend adds them up in parts.

Numbers that are nearly equal are the worst case: a sum that goes along in one register rounds each of them alike.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Array, Graph
from kernels.options import Backend, Limits, Options
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, generator, relative_error
from tests.unit.kernels.back.rows import layer_norm

LONG = 18000


def rows() -> Graph:
    """Every operation that adds up long rows, by each of its kernels."""
    build = Builder()
    x = build.input(3, LONG, name="row")
    columns, channels = build.input(2, LONG, 3, name="columns"), build.input(1, LONG, 2, 1, name="channels")
    pixels = build.input(1, 4, 131, 140, name="pixels")
    few = build.input(4500, 1, 4, name="few")
    spread, picture = build.input(3, LONG, name="spread"), build.input(1, 4, 131, 140, name="spread picture")
    outputs = [
        build.node("softmax", [x], (3, LONG), axis=1), build.node("softmax", [columns], (2, LONG, 3), axis=1),
        build.node("softmax", [channels], (1, LONG, 2, 1), axis=1),
        build.node("reduce", [x], (3, 1), kind="mean", start=1, stop=2),
        build.node("reduce", [columns], (2, 1, 3), kind="sum", start=1, stop=2),
        build.node("reduce", [few], (1, 1, 4), kind="mean", start=0, stop=2),
        build.node("global_average_pool", [pixels], (1, 4, 1, 1)),
        build.node("average_pool", [pixels], (1, 4, 2, 2), kernel=(120, 120), strides=(11, 20), pads=(0, 0, 0, 0),
                   count_include_pad=0),
        layer_norm(build, spread, (3, LONG)),
        build.node("instance_norm", [picture, build.constant(4), build.constant(4)], (1, 4, 131, 140), epsilon=1e-5),
    ]  # fmt: skip
    return build.outputs(*outputs)


def nearly_equal(graph: Graph) -> dict[str, Array]:
    draw = generator()
    return {
        name: (0.7 + (1 if name.startswith("spread") else 0.02) * draw.standard_normal(graph.shapes[name])).astype(np.float32)
        for name in graph.inputs
    }


@pytest.mark.parametrize(
    ("api", "limits"),
    [("cpu", Limits()), *((api, Limits(cpu_device=is_cpu)) for api in ("opencl", "vulkan") for is_cpu in (True, False))],
)
def test_long_rows(agent: Agent, api: Backend, limits: Limits, tmp_path: Path) -> None:
    graph = rows()
    inputs = nearly_equal(graph)
    wanted = evaluate(graph, inputs)
    bundle = compile_graph(graph, Options(api), limits, spirv_cache=tmp_path)
    ended = agent.run(bundle, inputs, "--warmup", 0, "--samples", 1)
    assert ended.code == 0, ended.events[-1]
    errors = {
        port.name: relative_error(ended.output(i).reshape(port.shape), wanted[port.name])
        for i, port in enumerate(bundle.plan.outputs)
    }
    print(api, limits.cpu_device, {k: f"{v:.1e}" for k, v in errors.items()})
    assert {name: error for name, error in errors.items() if not error <= 6e-7} == {}
    assert len(errors) == 10
