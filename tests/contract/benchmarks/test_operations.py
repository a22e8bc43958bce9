"""The benchmark of study P as a process, at tiny sizes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.source_tree import ROOT


def operations(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "benchmarks.engine.operations", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=250, check=False)


def test_four_operations_are_verified_and_timed(agent_binary: Path, tmp_path: Path) -> None:
    out = tmp_path / "raw.json"
    chosen = ("--apis", "opencl", "--sizes", "matmul=16,conv3x3=8,transpose=16,add=256:1024")
    done = operations(*chosen, "--rounds", "2", "--seconds", "0", "--binary", str(agent_binary), "-o", str(out))
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())["found"]
    assert [(one["operation"], one["size"], one["api"]) for one in found] == [
        (operation, size, api)
        for operation, size in (("matmul", 16), ("conv3x3", 8), ("transpose", 16), ("add", 256), ("add", 1024))
        for api in ("opencl", "cpu")
    ]
    for one in found:
        assert one["error"] < 1e-5 and not one["failed"]
        assert [len(turn) for turn in one["samples_ms"]] == [3, 3]
        assert one["cold_ms"]["first inference"] > 0
    assert "| add | opencl |" in done.stdout and "| crossover |" in done.stdout


def test_a_device_that_is_not_there_is_said(agent_binary: Path) -> None:
    done = operations(
        "--apis", "opencl", "--device", "no such GPU", "--sizes", "add=256", "--binary", str(agent_binary)
    )
    assert done.returncode == 1 and "no opencl device has 'no such GPU' in its name" in done.stderr
    assert "| add | opencl | - | - | not measured | not measured |" in done.stdout


def test_arguments_that_mean_nothing(agent_binary: Path) -> None:
    done = operations("--sizes", "matmul=7", "--binary", str(agent_binary))
    assert done.returncode == 2 and "matmul has: 16, 32" in done.stderr
    done = operations("--binary", "no/agent")
    assert done.returncode == 2 and "no agent" in done.stderr
