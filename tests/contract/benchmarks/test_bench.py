"""A small benchmark as a process: ours and onnxruntime on a network of few programs, which are built in a moment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.engine.__main__ import main
from benchmarks.engine.case import make_case
from benchmarks.engine.contender import ContenderError
from benchmarks.engine.ours import Ours
from benchmarks.engine.peer_process import Peer
from benchmarks.engine.results import read
from tests.source_tree import ROOT

Asked = Callable[..., tuple[int, str, str]]
QUICK = ("--rounds", "2", "--seconds", "0.01", "--samples", "2", "--warmup", "0")


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "benchmarks.engine", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=250, check=False)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    """The command in this process: status and what it says, on both streams."""

    def ask(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["benchmarks.engine", *arguments])
        return (main(), *capsys.readouterr())

    return ask


@pytest.mark.slow
def test_ours_and_onnxruntime_agree_and_are_timed(agent_binary: Path, tmp_path: Path, asked: Asked) -> None:
    out = tmp_path / "raw.json"
    chosen = ("--networks", "classifier_784", "--contenders", "ours CPU,ours OpenCL,onnxruntime", "--threads", "1")
    done = bench(*chosen, *QUICK, "--binary", str(agent_binary), "-o", str(out))
    assert done.returncode == 0, done.stderr
    (found,) = read(out).networks
    assert {row.contender: row.status for row in found.rows} == {
        "ours CPU 1T": "ok", "ours OpenCL": "ok", "onnxruntime CPU 1T": "ok",
    }  # fmt: skip
    for row in found.rows:
        assert row.error is not None and row.error < 1e-4
        assert row.cold and row.warm and row.steady and row.steady.rounds == 2
    assert "| classifier_784 | ours OpenCL |" in done.stdout
    status, said, _ = asked("--table", str(out))
    assert status == 0 and "### classifier_784" in said


@pytest.mark.slow
def test_building_programs_is_no_part_of_the_processors_time(agent_binary: Path, tmp_path: Path) -> None:
    """Caches are empty at first: the process that opens builds every program, which takes the processor a second."""
    ours = Ours("ours", "opencl", agent_binary, tmp_path / "ours", spirv_cache=tmp_path / "spirv")
    case = make_case("matmul_64", tmp_path)
    ours.open(case, tmp_path / "caches")
    ours.infer(1)
    spent = ours.turn(0, 0.01, 2).processor_ms
    assert spent is not None and spent > -20, "less than what starting a process varies by"


def test_what_is_not_there_is_named(asked: Asked) -> None:
    status, _, said = asked("--networks", "lennet")
    assert status == 2 and "no network is called 'lennet'" in said
    status, _, said = asked("--contenders", "tensorrt")
    assert status == 2 and "'tensorrt'" in said


def test_a_peer_that_dies_or_does_not_exist_says_so(tmp_path: Path) -> None:
    case = make_case("lenet", tmp_path)
    peer = Peer("ort", "ort", tmp_path / "ort", threads=1, device="", variables={})
    peer.open(case, tmp_path / "caches")
    assert peer._process
    peer._process.kill()
    with pytest.raises(ContenderError, match=r"its process ended with status -9"):
        peer.turn(0, 0, 1)
    peer.close()
    unknown = Peer("none", "no_such_engine", tmp_path / "none", threads=1, device="", variables={})
    with pytest.raises(ContenderError, match="no_such_engine"):
        unknown.open(case, tmp_path / "caches")
    unknown.close()
