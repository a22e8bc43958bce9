"""Agent and farm under a real locale whose decimals have commas: they read and write the same as without one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from device_agent.build import binary
from farm.cli import main
from kernels.compile import compile_graph
from kernels.frontend.load import load_workload, random_inputs
from kernels.options import Backend, Limits, Options
from tests.contract.agent.driver import Agent
from tests.servers import missing, required

PLAIN = {"LC_ALL": "C.UTF-8"}
POINT = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.localeconv()['decimal_point'])"


@pytest.fixture(scope="module")
def comma(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of de_DE.UTF-8, made here from the C library's sources of locales."""
    folder = tmp_path_factory.mktemp("locales")
    words = [required("localedef"), "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        missing("the source of the locale de_DE")
    found = {"LOCPATH": str(folder), "LC_ALL": "de_DE.UTF-8"}
    assert _said([sys.executable, "-c", POINT], found) == ",\n"
    return found


def _said(argv: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(argv, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_probe(comma: dict[str, str], tmp_path: Path) -> None:
    agent = Agent(binary(), tmp_path)
    plain, german = (agent.call([str(agent.binary), "probe"], **each).all("probe") for each in (PLAIN, comma))
    assert [event.facts for event in german] == [event.facts for event in plain] != []


@pytest.mark.parametrize("backend", ["opencl", "vulkan", "cpu"])
def test_run(comma: dict[str, str], tmp_path: Path, backend: Backend) -> None:
    """The options have fractions, and the hash that the agent tells is of the plan's numbers as text."""
    graph = load_workload(network="lenet", onnx=None, seed=1)
    bundle, inputs = compile_graph(graph, Options(backend), Limits()), random_inputs(graph, 2)
    options = ("--deadline-s", "90.5", "--warmup", 2, "--warmup-stable", "0.5", "--samples", 2)
    outputs = []
    for environment in (PLAIN, comma):
        ended = Agent(binary(), tmp_path).run(bundle, inputs, *options, **environment)
        assert ended.code == 0 and len(ended.all("sample")) >= 2
        assert ended.one("device").plan == bundle.plan.plan_hash
        outputs.append(ended.output())
    np.testing.assert_array_equal(*outputs)


@pytest.mark.parametrize("backend", ["opencl", "vulkan"])
def test_farm(comma: dict[str, str], tmp_path: Path, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vulkan's shaders are compiled by glslc, each time anew."""
    plans, plain, german = [], tmp_path / "plain", tmp_path / "german"
    for out in (plain, german):
        words = ["plan", "--network", "lenet", "--backend", backend, "-o", str(out), "--state", f"{out}-state"]
        if out == german:
            _said([sys.executable, "-m", "farm.cli", *words], comma)
        else:
            monkeypatch.setenv("LC_ALL", PLAIN["LC_ALL"])
            assert main(words) == 0
        plans.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert plans[0] == plans[1] != {}
