"""Sorted rows and suppressed boxes in the agent: exactly those of NumPy's stable sort, and of a walk through pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options, Precision
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import Builder, side_by_side

ROWS = ((1, 1, 1), (3, 2, 1), (1, 40, 7), (5, 64, 64), (2, 2049, 3), (90, 300, 200), (1, 5000, 5000), (2, 9001, 1100))
"""Rows, their elements and how many of them are wanted: a run, two, some without a partner."""
BOXES = ((1, 1, 1, 1), (1, 1, 7, 20), (2, 3, 40, 12), (1, 1, 700, 300), (3, 1, 130, 130))
"""Pictures, classes, boxes and how many may be taken."""
LIMITS = {
    "phone": Limits(local_bytes=16384, max_work_group=128),
    "little": Limits(local_bytes=2048, max_work_group=32),
    "cpu": Limits(cpu_device=True),
}


def sorts(longest: int) -> Graph:
    graphs = {}
    for rows, n, k in (each for each in ROWS if each[1] <= longest):
        for largest in (True, False):
            build = Builder()
            x = build.input(rows, n)
            asked = ("values", "places") if n % 2 else ("places",)
            found = [build.node("sort", [x], (rows, k), k=k, largest=largest, gives=gives) for gives in asked]
            graphs[f"{rows}x{n}x{k}{largest}"] = build.outputs(*found)
    return side_by_side(graphs)


def numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Many are equal, some are not finite."""
    x = np.round(rng.standard_normal(shape) * 20) / 4
    for special in (np.nan, np.inf, -np.inf, -0.0):
        x[rng.random(shape) < 0.03] = special
    return x.astype(np.float32)


def suppressions(rng: np.random.Generator) -> tuple[Graph, dict[str, np.ndarray[Any, Any]]]:
    graphs, inputs = {}, {}
    for batch, classes, n, rounds in BOXES:
        build, rows = Builder(), batch * classes
        low = rng.integers(0, 24, (batch, n, 2)) / 4
        high = low + rng.integers(0, 24, (batch, n, 2)) / 4
        given = {
            "boxes": np.concatenate([low, high, (high - low).prod(2, keepdims=True)], 2),
            "order": np.stack([rng.permutation(n) for _ in range(rows)]),
            "valid": rng.integers(0, n + 1, (rows, 1)) if rows > 1 else np.full((1, 1), n),
        }
        names = [build.input(*given[name].shape, name=name) for name in given]
        name = f"{batch}x{classes}x{n}"
        graphs[name] = build.outputs(build.node("suppress", names, (rows, rounds), rounds=rounds, overlap=0.3))
        inputs |= {f"{name}.{key}": array.astype(np.float32) for key, array in given.items()}
    return side_by_side(graphs), inputs


def run(agent: Agent, graph: Graph, inputs: dict[str, Any], options: Options, limits: Limits, shaders: Path) -> None:
    bundle = compile_graph(graph, options, limits, spirv_cache=shaders)
    ended = agent.run(bundle, inputs, "--warmup", 0, "--samples", 1)
    assert ended.code == 0, ended.events[-1]
    wanted = evaluate(graph, inputs, dtype=np.float32)
    for index, port in enumerate(bundle.plan.outputs):
        assert np.array_equal(ended.output(index).reshape(port.shape), wanted[port.name], equal_nan=True), port.name


@pytest.mark.parametrize(
    ("api", "limits", "precision"),
    [
        ("cpu", "cpu", "fp32"),
        *((api, name, "fp32") for api in ("opencl", "vulkan") for name in LIMITS),
        *((api, "little", "fp16") for api in ("opencl", "vulkan")),
    ],
)
def test_the_best_come_first_and_boxes_that_they_overlap_go(
    agent: Agent, api: Backend, limits: str, precision: Precision, shaders: Path, seed: int
) -> None:
    """Halves hold all of these numbers, and places of up to 2048 elements."""
    rng = np.random.default_rng(seed)
    graph = sorts(2048 if precision == "fp16" else 1 << 24)
    x = {name: numbers(rng, graph.shapes[name]) for name in graph.inputs}
    run(agent, graph, x, Options(api, precision), LIMITS[limits], shaders)
    run(agent, *suppressions(rng), Options(api, precision), LIMITS[limits], shaders)
