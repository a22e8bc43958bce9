"""Convolutions in other work-groups than the usual one, through the agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.compile import compile_graph
from kernels.options import Choice, Limits, Options
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import TOLERANCE, Builder, inputs_of, relative_error


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
@pytest.mark.parametrize("group", [32, 128])
def test_the_agent_agrees_in_every_work_group(agent: Agent, backend: str, group: int, shaders: Path) -> None:
    build = Builder()
    x = build.input(1, 24, 13, 21)
    wide = build.conv(x, 20, (3, 3), (1, 1), (1, 1, 1, 1), activation=("relu",))
    graph = build.outputs(
        wide, build.conv(x, 24, (3, 3), (1, 1), (1, 1, 1, 1), groups=24), build.conv(wide, 17, (1, 1)),
        build.conv(wide, 20, (3, 3), (2, 2)),
    )  # fmt: skip
    words = (f"window 4x1x4@{group}", f"depthwise 4@{group}", f"pointwise 2x2x4@{group}", f"direct 1x1x4@{group}")
    tuned = {node.name: Choice.of(each) for node, each in zip(graph.nodes, words, strict=True)}
    options = Options(backend, tuned=tuned)  # type: ignore[arg-type]
    bundle = compile_graph(graph, options, Limits(), spirv_cache=shaders)
    assert set(words) <= set(bundle.plan.options.values())
    assert [program.work_group[0] for program in bundle.plan.programs].count(group) == 4
    inputs = inputs_of(graph)
    ended = agent.run(bundle, inputs)
    assert ended.code == 0, ended.events[-1]
    wanted = evaluate(graph, inputs)
    for i, port in enumerate(bundle.plan.outputs):
        error = relative_error(ended.output(i).reshape(port.shape), wanted[port.name])
        assert error <= TOLERANCE["fp32"], port.name
