"""Small graphs of whole numbers of every width, against onnxruntime, to the last bit; `make fuzz` draws thousands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.contract.agent.driver import Agent

from .onnx_cases import through_agent
from .onnx_fuzz import text_of
from .typed_fuzz import cases

CASES = {"cpu": 60, "opencl": 12, "vulkan": 36}


@pytest.mark.parametrize("api", CASES)
def test_whole_numbers_are_what_onnxruntime_computes(agent: Agent, api: str, seed: int, tmp_path: Path) -> None:
    found = cases(np.random.default_rng([seed, 90]), 0, CASES[api], tmp_path / "m.onnx")
    assert not {text_of(one.case): one.wrong for one in found if one.wrong}
    taken = [one for one in found if one.graphs]
    assert len(taken) > CASES[api] // 2
    wrong = through_agent(taken, agent, api)
    assert not {text_of(one.case): wrong[one.case.name] for one in taken if one.case.name in wrong}
