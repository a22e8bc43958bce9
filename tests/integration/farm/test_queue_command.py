"""`farm queue SPEC` as a user starts it, on this workstation, without a running farm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from farm.parts.part import free_port
from orchestrator.acts.holding import HOLD_S
from orchestrator.ledger import Ledger
from tests.servers import told_by
from tests.source_tree import ROOT
from tests.waiting import eventually

SPEC = """
name: {name}
servers: [{{name: cpu, devices: serial == "local-cpu"}}]
classes:
  - {{name: a, arrivals: {{kind: poisson, rate: 10}}, service: {{kind: fixed, mean: 50 ms}}}}
limits: {{queue: 2}}
duration: {duration} s
warm_up: none
"""


def command(folder: Path, duration: int, *options: str) -> list[str]:
    spec = folder / f"of-{duration}-s.yaml"
    spec.write_text(SPEC.format(name="here", duration=duration))
    return [sys.executable, "-m", "farm.cli", "queue", str(spec), "--state", str(folder / "state"), *options]


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "FARM_ADB_PORT": str(free_port())}


def test_load_curve(tmp_path: Path, environment: dict[str, str]) -> None:
    argv = command(tmp_path, 3, "--rates", "0.3,3", "--json")
    done = subprocess.run(argv, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["source"] == "workstation" and "capacity: 20 requests/s" in done.stderr
    low, high = found["points"]
    assert [low["offered_per_s"], high["offered_per_s"]] == pytest.approx([6, 60])
    assert high["figures"]["throughput_per_s"]["value"] < 25 and high["figures"]["drop_share"]["value"] > 0.3
    assert done.stderr.count("kept as") == 2


def test_a_killed_run_leaves_the_device_usable(tmp_path: Path, environment: dict[str, str]) -> None:
    """Its agent ends with it, and its hold within a minute; the same user's next run begins at once."""
    with subprocess.Popen(command(tmp_path, 600), env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert any("run 1 of 1" in line for line in run.stderr), "it ended before its first run"
        children = psutil.Process(run.pid).children(recursive=True)
        agents = [each for each, words in told_by(children, lambda one: (one, one.cmdline())) if "serve" in words]
        assert len(agents) == 1
        run.send_signal(signal.SIGKILL)
    eventually(lambda: not agents[0].is_running() or agents[0].status() == psutil.STATUS_ZOMBIE)
    with Ledger(f"sqlite:///{tmp_path / 'state' / 'ledger.sqlite'}") as ledger:
        (hold,) = ledger.standing.holds()
        assert hold.until is not None and time.time() < hold.until <= time.time() + HOLD_S
    done = subprocess.run(command(tmp_path, 1), env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
