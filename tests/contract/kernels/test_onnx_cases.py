"""ONNX's own cases: a sample of the single operators in every run, and all of the models that PyTorch once exported."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from kernels.compile import compile_graph
from kernels.frontend.onnx import load_onnx
from kernels.options import Options
from tests.contract.agent.driver import Agent
from tests.unit.kernels.front.onnx_models import run_onnxruntime, save_model
from tests.unit.kernels.front.test_padded_rows import CONSTANTS, EVERY, ROWS, WIDE, length, rows
from tests.unit.kernels.front.test_padded_rows import drawn as rows_drawn
from tests.unit.kernels.front.test_suppressing import detector, drawn, padded

from .onnx_cases import REFUSED, Found, exported, imported, limits_here, nodes, operators, through_agent

MOST_REFUSED, FEWEST_MODELS = 81, 109
"""These only move towards each other's end: fewer are refused, more models are taken."""
OPERATORS, IN_THE_AGENT = 24, 12
"""The numbers tried in one run; `python -m tests.contract.kernels.onnx_cases cpu opencl vulkan` tries all."""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    rng = random.Random(os.environ["POCKETFARM_TEST_SEED"] + "onnx")
    path = tmp_path_factory.mktemp("onnx") / "m.onnx"
    return [imported(case, path) for case in nodes(rng.sample(operators(), OPERATORS))]


def test_what_is_taken_computes_what_it_should(sample: list[Found]) -> None:
    assert not {found.case.name: found.wrong for found in sample if found.wrong}


def test_what_is_refused_becomes_less(sample: list[Found]) -> None:
    known = REFUSED.read_text().split()
    assert len(known) <= MOST_REFUSED
    refused = {found.case.name: found.refusals[-1:] for found in sample if not found.graphs}
    assert not {name: why for name, why in refused.items() if name not in known}, "these were taken before"
    taken = {found.case.name for found in sample} - set(refused)
    assert not taken & set(known), "these are taken now: write the list again (onnx_cases.py --write)"


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_backends_compute_what_they_should(sample: list[Found], agent: Agent, api: str) -> None:
    rng = random.Random(os.environ["POCKETFARM_TEST_SEED"] + api)
    taken = [found for found in sample if found.graphs]
    assert not through_agent(rng.sample(taken, min(IN_THE_AGENT, len(taken))), agent, api)


def test_exported_models(tmp_path: Path) -> None:
    every = [imported(case, tmp_path / "m.onnx") for case in exported()]
    assert not {found.case.name: found.wrong for found in every if found.wrong}
    assert sum(bool(found.graphs) for found in every) >= FEWEST_MODELS


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_batch_normalisation_of_every_rank(tmp_path: Path, agent: Agent, api: str) -> None:
    every = [imported(case, tmp_path / "m.onnx") for case in exported("test_BatchNorm*")]
    assert len(every) >= 5
    assert not through_agent(every, agent, api)


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_suppression_of_boxes(tmp_path: Path, agent: Agent, api: str) -> None:
    cases = [case for case in nodes(["nonmaxsuppression"]) if case.operator == "NonMaxSuppression"]
    every = [imported(case, tmp_path / "m.onnx") for case in cases]
    assert len(every) >= 10
    assert not {found.case.name: found.refusals for found in every if not found.graphs}
    assert not through_agent(every, agent, api)


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_suppression_of_random_boxes_is_that_of_onnxruntime(tmp_path: Path, agent: Agent, api: str, seed: int) -> None:
    """Boxes and scores are inputs of the plan; two pictures of three classes, many scores equal."""
    inputs = drawn(np.random.default_rng(seed), 2, 3, 40)
    path = detector(tmp_path, inputs, 10, least=0.25)
    graph = load_onnx(path)
    ended = agent.run(compile_graph(graph, Options(api), limits_here(agent.binary, api)), inputs, "--samples", 1)  # type: ignore[arg-type]
    assert not ended.code, ended.events[-1]
    wanted = run_onnxruntime(path, inputs)["rows"]
    assert np.array_equal(ended.output(0).reshape(60, 3), padded(wanted, 60))
    assert ended.output(1).tolist() == [len(wanted)]


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_rows_that_the_input_decides(tmp_path: Path, agent: Agent, api: str, seed: int) -> None:
    """Chosen twice, joined behind each other, ordered and summed: none, some and all of them; one of these on GPUs,
    where a run compiles some hundred programs."""
    nodes = [*rows("r"), *rows("q", "x", "fifth"), *length("r"), *EVERY]
    used = {name for node in nodes for name in node.input}
    path = save_model(
        tmp_path / "m.onnx", nodes, {"x": (ROWS, WIDE)}, ["y", "total"],
        {name: value for name, value in CONSTANTS.items() if name in used},
    )  # fmt: skip
    graph = load_onnx(path)
    bundle = compile_graph(graph, Options(api), limits_here(agent.binary, api))  # type: ignore[arg-type]
    for share in (0.0, 0.5, 1.0) if api == "cpu" else (random.Random(seed).choice((0.0, 0.5, 1.0)),):
        x = rows_drawn(np.random.default_rng(seed), share)
        wanted, ended = run_onnxruntime(path, {"x": x}), agent.run(bundle, {"x": x}, "--samples", 1)
        assert not ended.code, ended.events[-1]
        found = {name: ended.output(index).reshape(graph.shapes[name]) for index, name in enumerate(graph.outputs)}
        (count,) = found["y.count"]
        assert count == len(wanted["y"])
        assert np.allclose(found["y"][: int(count)], wanted["y"], rtol=1e-5)
        assert np.allclose(found["total"], wanted["total"], rtol=1e-5, atol=1e-6)
