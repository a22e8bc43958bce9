"""Steps that are launched one by one and in command buffers (OpenCL): the same results, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.frontend.load import random_inputs
from kernels.options import Limits, Options
from kernels.plan.model import Copy
from tests.unit.kernels.back.graphs import densely_connected
from tests.unit.kernels.back.trainings import NETWORKS, data_of

from .driver import Agent, Ended
from .plans import COUNT, Draft, combine, vector
from .test_streams import frames_of
from .test_training import compiled


def recorded(run: Ended) -> list[str]:
    """The set-up's words on command buffers."""
    return [event.detail for event in run.all("setup") if event.step == "record"]


def launches(agent: Agent, *arguments: Any) -> tuple[Ended, Ended]:
    """The same run both ways."""
    single, in_buffers = (agent.run(*arguments, POCKETFARM_LAUNCH=way) for way in ("single", "recorded"))
    assert single.code == 0 == in_buffers.code, (single.events[-1], in_buffers.events[-1])
    assert not recorded(single)
    return single, in_buffers


def test_copies_stand_between_command_buffers_and_frames_follow_each_other(agent: Agent, seed: int) -> None:
    x, w = frames_of(seed), vector(seed + 100)
    steps = [
        combine("x", "w", "t"), combine("t", "x", "u", op=1), combine("u", "w", "v"),
        Copy(layer="copy", source="v", target="z", bytes=COUNT * 4),
        combine("z", "x", "a"), combine("a", "a", "b", op=1),
        Copy(layer="copy", source="b", target="c", bytes=COUNT * 4), combine("c", "w", "y"),
    ]  # fmt: skip
    bundle = Draft("opencl", steps, weights={"w": w}).bundle()
    single, in_buffers = launches(agent, bundle, {"x": x}, "--samples", 3, "--inferences", 13, "--layer-passes", 1)
    assert recorded(in_buffers) == ["5 steps in 2 command buffers"]
    np.testing.assert_array_equal(in_buffers.output(), single.output())
    np.testing.assert_allclose(single.output().reshape(x.shape), ((x + w) * x + w + x) ** 2 + w, rtol=1e-4, atol=1e-5)
    assert len(in_buffers.all("layer")) == 8, "a profiled pass launches each step by itself"


def test_a_network_and_a_training(agent: Agent, seed: int) -> None:
    graph = densely_connected(2, 5)
    bundle = compile_graph(graph, Options("opencl"), Limits(cpu_device=True))
    single, in_buffers = launches(agent, bundle, random_inputs(graph, seed), "--samples", 2)
    np.testing.assert_array_equal(in_buffers.output(), single.output())
    assert recorded(in_buffers)
    network = NETWORKS["sigmoids"](4)
    data = data_of(network, 2)
    _, plan = compiled(network, "opencl", pretrain_epochs=2, epochs=3, steps="joined")
    ends = launches(agent, plan, data, "--checkpoint", agent.folder / "trained")
    one, other = ([sample.loss for sample in run.all("sample")] for run in ends)
    assert one == other and len(one) > 3
    assert ends[0].one("checkpoint").sha256 == ends[1].one("checkpoint").sha256


def test_a_cpu_behind_opencl_launches_steps_one_by_one_unless_it_is_asked(agent: Agent) -> None:
    bundle = Draft("opencl", [combine("x", "x", "t"), combine("t", "x", "y")]).bundle()
    assert not recorded(agent.run(bundle, {"x": vector(1)}))
    refused = agent.run(bundle, {"x": vector(1)}, POCKETFARM_LAUNCH="never").error
    assert (refused.code, "`single`, `recorded`" in refused.message) == ("usage", True)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_single_step_needs_no_command_buffer(agent: Agent, steps: int) -> None:
    chain = [combine("x", "x", "t"), combine("t", "x", "y")] if steps > 1 else [combine("x", "x", "y")]
    run = agent.run(Draft("opencl", chain).bundle(), {"x": vector(1)}, POCKETFARM_LAUNCH="recorded")
    assert run.code == 0 and recorded(run) == [f"{steps if steps > 1 else 0} steps in {steps - 1} command buffers"]
