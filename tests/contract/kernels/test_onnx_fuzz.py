"""Operators with random ranks, shapes and attributes, and chains behind a layer: what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.ir.graph import Graph
from tests.contract.agent.driver import Agent

from . import onnx_mutations as mutations
from .onnx_cases import Found, imported, through_agent
from .onnx_fuzz import OPERATORS, cases, folded, judged, text_of

CASES, CHANGED = 48, 60


@pytest.fixture(scope="module")
def drawn(seed: int, tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    return cases(np.random.default_rng([seed, 80]), 0, CASES, tmp_path_factory.mktemp("fuzz") / "m.onnx")


def reads_constants_alone(graph: Graph) -> bool:
    """Return whether a node does, but one that gives a constant the name of a result of the model."""
    inner = [node for node in graph.nodes if "." in node.output]
    return any(not {*node.inputs} - graph.constants.keys() - {""} for node in inner)


def test_what_is_taken_is_what_onnxruntime_computes(drawn: list[Found]) -> None:
    assert not {text_of(found.case): found.wrong for found in drawn if found.wrong}
    assert not [text_of(found.case) for found in drawn if any(map(reads_constants_alone, found.graphs))]
    refused = [found.refusals[-1] for found in drawn if not found.graphs]
    assert len(refused) < CASES // 10, refused
    assert len({found.case.operator for found in drawn}) > min(len(OPERATORS), CASES) // 3


def test_what_the_import_computes_of_constants_is_what_onnxruntime_computes(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([seed, 81])
    found = [
        imported(case, tmp_path / "m.onnx") for op in OPERATORS if (case := judged(op, *folded(rng, op))) is not None
    ]
    assert len(found) > len(OPERATORS) // 2
    assert not {text_of(one.case): one.wrong or one.refusals for one in found if one.wrong or not one.graphs}


def test_onnx_s_own_cases_with_a_change_are_right_or_refused(tmp_path: Path) -> None:
    """The same in each run: of some ten thousand one is computed otherwise by onnxruntime than by ONNX's reference."""
    drawn = [*mutations.cases(np.random.default_rng(82), CHANGED, tmp_path / "m.onnx")]
    assert not {f"{one.found.case.name}: {one.what}": one.found.wrong for one in drawn if one.found.wrong}
    assert sum(one.is_computed and bool(one.found.graphs) for one in drawn) > CHANGED // 5


@pytest.mark.parametrize("api", ["cpu", "opencl", "vulkan"])
def test_backends_compute_it_too(drawn: list[Found], agent: Agent, api: str) -> None:
    taken = [found for found in drawn if found.graphs][: 32 if api == "cpu" else 6]
    wrong = through_agent(taken, agent, api)
    assert not {text_of(found.case): wrong[found.case.name] for found in taken if found.case.name in wrong}
