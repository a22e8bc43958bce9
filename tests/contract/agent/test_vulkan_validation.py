"""Vulkan's validation layer watches the agent: use of the API, and by synchronisation validation every barrier.

Lavapipe runs dispatches one after the other, so a missing barrier changes no result there; on a phone it would.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.frontend.load import load_workload, random_inputs
from kernels.options import Limits, Options
from kernels.plan.model import Bundle, SwapIn
from tests.unit.kernels.back.test_saving_memory import small_pyramid

from .driver import Agent
from .plans import Array, Draft, binary_program, combine, vector

LAYER = "VK_LAYER_KHRONOS_validation"
SETTINGS = """
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
khronos_validation.validate_sync = true
khronos_validation.report_flags = error,warn
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.log_filename = {log}
"""


class Watched:
    """The agent under the layer."""

    def __init__(self, agent: Agent) -> None:
        self._agent, self._log = agent, agent.folder / "layer.log"
        (agent.folder / "vk_layer_settings.txt").write_text(SETTINGS.format(log=self._log))

    def run(self, bundle: Bundle, inputs: dict[str, Array], *options: object) -> str:
        """Return what the layer has to say."""
        ended = self._agent.run(
            bundle,
            inputs,
            *options,
            GALLIVM_PERF="",
            VK_INSTANCE_LAYERS=LAYER,
            VK_LAYER_SETTINGS_PATH=str(self._agent.folder),
        )
        assert ended.code == 0, ended.events[-1]
        return self._log.read_text() if self._log.exists() else ""


def without_barrier() -> tuple[Bundle, dict[str, Array]]:
    """Two steps of which the second reads what the first writes, and a plan that calls it reading."""
    honest = binary_program("vulkan")
    lying = honest.model_copy(
        update={"parameters": tuple(each.model_copy(update={"access": "read"}) for each in honest.parameters)}
    )
    steps = [combine("x", "x", "t", layer="first"), combine("t", "t", "y", layer="second")]
    return Draft("vulkan", steps, programs=[lying]).bundle(), {"x": vector(1)}


@pytest.fixture
def watched(agent: Agent) -> Watched:
    """The agent under the layer, with proof that this is there and sees a barrier that is missing."""
    found = Watched(agent)
    if "SYNC-HAZARD" not in (said := found.run(*without_barrier())):
        pytest.skip(
            f"no layer of Vulkan that validates synchronisation (vulkan-validationlayers; it said {said[:200]!r})"
        )
    (agent.folder / "layer.log").unlink()
    return found


SMALL = 8_000_000
"""Bytes: SqueezeNet 1.1 then works in parts and takes results in the place of operands."""
CASES: dict[str, tuple[str, Options, tuple[object, ...]]] = {
    "branches": ("squeezenet_v1_1", Options("vulkan"), ()),
    "memory-order": ("squeezenet_v1_1", Options("vulkan", order="memory"), ()),
    "budget": ("squeezenet_v1_1", Options("vulkan", memory_budget=SMALL), ()),
    "unfused": ("squeezenet_v1_1", Options("vulkan", fuse="none", concat="join"), ()),
    "winograd": ("cifar10_quick", Options("vulkan", algorithm="winograd"), ()),
    "im2col": ("lenet", Options("vulkan", algorithm="im2col"), ()),
    "stream": ("lenet", Options("vulkan"), ("--inferences", 4)),
}


PASSES = ("--warmup", 1, "--samples", 2, "--layer-passes", 1)


@pytest.mark.parametrize("case", CASES)
def test_the_layer_has_nothing_to_say(watched: Watched, case: str, seed: int) -> None:
    network, options, more = CASES[case]
    graph = load_workload(network=network, onnx=None, seed=1)
    bundle = compile_graph(graph, options, Limits(precisions=("fp32", "fp16")))
    inputs = {name: np.ascontiguousarray(value) for name, value in random_inputs(graph, seed).items()}
    if case == "stream":  # frames of their own, moved by the stream
        inputs = {name: np.concatenate([value] * 4) for name, value in inputs.items()}
    assert watched.run(bundle, inputs, *PASSES, *more) == ""


def test_nor_where_tensors_wait_in_host_memory(watched: Watched, seed: int) -> None:
    graph, limits = small_pyramid(), Limits(cpu_device=True)
    options = Options("vulkan", algorithm="direct")
    free = compile_graph(graph, options, limits).plan
    arena = sum(pool.bytes for pool in free.pools if pool.id.startswith("arena"))
    tight = replace(options, memory_budget=free.requires.total_bytes - arena * 3 // 5)
    bundle = compile_graph(graph, tight, limits)
    assert any(isinstance(step, SwapIn) for step in bundle.plan.steps)
    assert watched.run(bundle, random_inputs(graph, seed), *PASSES) == ""
