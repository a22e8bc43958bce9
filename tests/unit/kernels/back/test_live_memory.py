"""Memory over the steps of a plan, and its limits."""

from __future__ import annotations

import pytest

from kernels.compile import compile_graph
from kernels.frontend.load import load_workload
from kernels.options import Limits, Options
from kernels.plan.live_memory import live_memory

from .graphs import Builder


def test_what_lives_in_each_step_is_counted_by_hand() -> None:
    """A pack of 4 x 6 x 6, two convolutions of 8 x 6 x 6, each alive from its writer to its reader."""
    build = Builder()
    first = build.conv(build.input(1, 4, 6, 6), 8, (1, 1))
    graph = build.outputs(build.conv(build.conv(first, 8, (1, 1)), 8, (1, 1)))
    plan = compile_graph(graph, Options("opencl", fuse="none", in_place=False), Limits()).plan
    memory = live_memory(plan)
    layers = [step.layer for step in plan.steps]
    alive = dict(zip(layers, memory.activations, strict=True))
    assert alive[layers[0]] == 4 * 36 * 4 and alive["conv0"] == (4 + 8) * 36 * 4 and alive["conv1"] == (8 + 8) * 36 * 4
    assert memory.lasting == sum(buffer.bytes for buffer in plan.buffers if buffer.role != "activation")
    assert memory.most == memory.lasting + max(memory.activations) <= memory.allocated


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
def test_a_plan_keeps_to_the_largest_object(backend: str) -> None:
    graph = load_workload(network="squeezenet_v1_0", onnx=None, seed=None)
    free = compile_graph(graph, Options(backend), Limits()).plan  # type: ignore[arg-type]
    bound = free.requires.max_buffer_bytes // 2
    plan = compile_graph(graph, Options(backend, largest_object=bound), Limits()).plan  # type: ignore[arg-type]
    assert plan.requires.max_buffer_bytes <= bound < free.requires.max_buffer_bytes
