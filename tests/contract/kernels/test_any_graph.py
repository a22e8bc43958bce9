"""Any small graph, compiled with any options, computes what the reference says, with nothing to say for Vulkan's layer.

POCKETFARM_TEST_GRAPHS=1000 pytest tests/contract/kernels/test_any_graph.py     # so many of each API, for a long night
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from kernels.compile import compile_graph
from kernels.errors import CompileError
from kernels.frontend.load import random_inputs
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.model import Bundle, Dispatch, PartArgument, Plan
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.contract.agent.plans import Array
from tests.contract.agent.test_vulkan_validation import LAYER, SETTINGS
from tests.unit.kernels.back.any_graph import any_graph, any_limits, any_options
from tests.unit.kernels.back.graphs import densely_connected, joined_twice

pytestmark = [pytest.mark.slow, pytest.mark.long]
EXAMPLES = {"opencl": 4, "vulkan": 6, "cpu": 40}
BOUNDS = {"fp32": 1e-4, "relaxed": 1e-4, "fp16": 2e-2}
"""Error bounds of a few operations in a row; `auto` may take Winograd, and instance normalisation magnifies."""


USUAL = 0.3
"""Inputs are standard normal numbers. What nearly cancels, or is clipped to almost nothing, is measured by this."""


def _size(wanted: Array) -> float:
    """Norm, or that of as many usual numbers."""
    return max(float(np.linalg.norm(wanted)), USUAL * wanted.size**0.5)


def _examples(api: str) -> int:
    return int(os.environ.get("POCKETFARM_TEST_GRAPHS", EXAMPLES[api]))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shaders and compiled programs, which graphs have in common."""
    return tmp_path_factory.mktemp("kept")


def compiled(graph: Graph, options: Options, limits: Limits, budget: float, shaders: Path) -> Bundle:
    """Compile within this share of the memory that it takes by itself. Graphs that are refused do not count."""
    try:
        bundle = compile_graph(graph, options, limits, spirv_cache=shaders)
        if budget < 1:
            tight = replace(options, memory_budget=int(budget * bundle.plan.requires.total_bytes))
            bundle = compile_graph(graph, tight, limits, spirv_cache=shaders)
    except CompileError as e:
        note(str(e))
        assume(False)
    return bundle


def shares_buffers(plan: Plan) -> bool:
    """Return whether a buffer is read in one part and written in another.

    The layer knows of whole buffers only, and asks for a barrier that is not needed.
    """
    programs = {program.id: program for program in plan.programs}
    touched: dict[str, set[str]] = {}
    for step in plan.steps:
        if isinstance(step, Dispatch):
            for given, parameter in zip(step.arguments, programs[step.program].parameters, strict=True):
                if isinstance(given, PartArgument):
                    touched.setdefault(given.buffer, set()).add(parameter.access)
    return any(len(access) > 1 or "readwrite" in access for access in touched.values())


@pytest.mark.parametrize("api", EXAMPLES)
def test_it_computes_what_it_means(api: str, agent_binary: Path, kept: Path, seed: int) -> None:
    @settings(max_examples=_examples(api), deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(any_graph(), any_options(api), any_limits(api), st.just(1.0) | st.floats(0.6, 0.95))
    def holds(graph: Graph, options: Options, limits: Limits, budget: float) -> None:
        bundle = compiled(graph, options, limits, budget if api != "cpu" else 1.0, kept / "shaders")
        inputs = random_inputs(graph, seed)
        with TemporaryDirectory() as folder:
            agent = Agent(agent_binary, Path(folder))
            (agent.folder / "vk_layer_settings.txt").write_text(SETTINGS.format(log=agent.folder / "layer.log"))
            ended = agent.run(
                bundle, inputs, "--warmup", 1, "--samples", 1, "--cache-dir", kept / "programs",
                *(("--threads", options.threads) if api == "cpu" else ()),
                VK_INSTANCE_LAYERS=LAYER if api == "vulkan" else "", VK_LAYER_SETTINGS_PATH=folder,
            )  # fmt: skip
            assume(ended.code == 0 or ended.error.code != "limit")
            assert ended.code == 0, ended.events[-1]
            log = agent.folder / "layer.log"
            said = log.read_text() if log.exists() else ""
            assert not said or shares_buffers(bundle.plan), said
            outputs = {event.name: ended.output(i) for i, event in enumerate(ended.all("output"))}
        for name, wanted in evaluate(graph, inputs).items():
            found = np.asarray(outputs[name]).reshape(wanted.shape)
            assert np.linalg.norm(found - wanted) <= BOUNDS[options.precision] * _size(wanted), name

    holds()


@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize("growth", [5, 16])
def test_layers_that_read_all_before_them_on_the_cpu(
    images: int, growth: int, agent_binary: Path, tmp_path: Path, seed: int
) -> None:
    """Their results lie in one another, as far as they begin one another."""
    for graph in (densely_connected(images, growth), joined_twice(images, growth)):
        inputs = random_inputs(graph, seed)
        ended = Agent(agent_binary, tmp_path).run(compile_graph(graph, Options("cpu"), Limits()), inputs)
        outputs = {event.name: ended.output(i) for i, event in enumerate(ended.all("output"))}
        for name, wanted in evaluate(graph, inputs).items():
            assert np.linalg.norm(outputs[name].reshape(wanted.shape) - wanted) <= 1e-5 * _size(wanted), name
