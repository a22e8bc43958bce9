"""NaN and infinities through the agent's Vulkan and CPU backends; OpenCL's are tested one by one in the unit tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.compile import compile_graph
from kernels.ir.compositions import clip, is_nan
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, side_by_side
from tests.unit.kernels.back.test_convolution import SHAPES
from tests.unit.kernels.back.test_ieee import definition, differences, special
from tests.unit.kernels.back.test_operations import CASES

OPERATIONS = (
    "relu", "clip", "leaky_relu", "sigmoid", "max_pool", "average_pool", "add", "softmax_vector", "lrn",
    "global_average_pool", "instance_norm", "dense_no_bias", "resize_linear_half_pixel_3",
)  # fmt: skip
MAPS = {
    "largest": ("max", "a", 0.0),
    "least": ("min", "a", 0.0),
    "is_nan": is_nan("a"),
    "clipped": clip("a", -1.0, 1.0),
}


def _graph() -> Graph:
    graphs: dict[str, Graph] = {}
    for name in OPERATIONS:
        build = Builder()
        graphs[name] = build.outputs(CASES[name](build))
    for name, expression in MAPS.items():
        build = Builder()
        graphs[name] = build.outputs(build.node("map", [build.input(3, 7)], (3, 7), expression=expression))
    for name in ("odd_channels", "pointwise_odd", "dilated"):
        build = Builder()
        size, *rest = SHAPES[name]
        first = build.conv(build.input(*size), *rest, activation=("relu",))
        graphs[f"conv_{name}"] = build.outputs(build.conv(first, 6, (1, 1)), first)
    return side_by_side(graphs)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["opencl", "vulkan", "cpu"])
def test_what_is_not_finite_passes_as_the_operations_say(agent: Agent, backend: Backend, shaders: Path) -> None:
    graph = _graph()
    inputs = special(graph)
    bundle = compile_graph(graph, Options(backend), Limits(), spirv_cache=shaders)
    ended = agent.run(bundle, inputs, "--warmup", 0, "--samples", 1)
    assert ended.code == 0, ended.events[-1]
    got = {port.name: ended.output(i).reshape(port.shape) for i, port in enumerate(bundle.plan.outputs)}
    assert differences(got, definition(graph, inputs)) == {}
