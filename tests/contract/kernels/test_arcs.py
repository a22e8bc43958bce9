"""Arc functions on GPUs, which drivers may compute roughly: against double precision, on all of their range."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.options import Limits, Options
from kernels.reference.expressions import MEANINGS
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder

COUNT = 4096


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
@pytest.mark.parametrize("name", ["asin", "acos", "atan"])
def test_an_arc_is_right_to_its_last_bits(agent: Agent, api: str, name: str, seed: int, shaders: Path) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, COUNT) if name != "atan" else rng.standard_normal(COUNT) * 10.0 ** rng.integers(-4, 5, COUNT)
    x[:8] = [0.0, 1.0, -1.0, 0.5, -0.5, 1e-30, 0.41421356, np.nan]
    x[8:10] = [1.5, -1.5]
    made = Builder()
    graph = made.outputs(made.node("map", [made.input(COUNT)], (COUNT,), expression=(name, "a")))
    given = x.astype(np.float32)
    run = agent.run(compile_graph(graph, Options(api), Limits(), spirv_cache=shaders), {"x": given})  # type: ignore[arg-type]
    assert run.code == 0, run.events[-1]
    found = run.output(0)
    with np.errstate(invalid="ignore"):
        wanted = MEANINGS[name](given.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=5e-7, atol=2e-7)
