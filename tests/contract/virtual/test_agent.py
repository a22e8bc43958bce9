"""The real agent inside a virtual phone."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest

import kernels.compile
from kernels.frontend.load import load_workload, random_inputs
from kernels.options import Limits, Options
from tests.waiting import LIMIT_S
from virtual_phones.control import ControlClient, PhoneStatus
from virtual_phones.faults import KillAgent, Unplug
from virtual_phones.launch import VirtualPhones

from .conftest import TMP, Adb, eventually

AGENT = Path(__file__).parents[3] / "device_agent" / "build" / platform.machine() / "pocketfarm-agent"
ON_PHONE = f"{TMP}/agent/pocketfarm-agent"
JOURNAL = f"{TMP}/run/journal.jsonl"


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def installed(port: int, phone: PhoneStatus) -> Adb:
    """adb for a phone that has the agent."""
    if not AGENT.is_file():
        verdict = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        verdict(f"{AGENT} is missing: python -m device_agent.build")
    adb = Adb(port, phone.serial)
    adb.connect()
    assert adb("push", str(AGENT), ON_PHONE).returncode == 0
    adb.stay_awake()
    return adb


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A small network as an OpenCL plan, and its input beside it."""
    graph = load_workload(network="lenet", onnx=None, seed=1)
    bundle = kernels.compile.compile_graph(graph, Options(backend="opencl"), Limits())
    bundle.write(tmp_path / "plan")
    for name, array in random_inputs(graph, 1).items():
        (tmp_path / "plan" / f"{name}.input").write_bytes(array.tobytes())
    return tmp_path / "plan"


@pytest.fixture
def run_command(plan: Path) -> str:
    """Starts a run of the plan, of some seconds, detached."""
    inputs = " ".join(f"--input {file.stem}={TMP}/run/plan/{file.name}" for file in plan.glob("*.input"))
    return (
        f"{ON_PHONE} run --plan {TMP}/run/plan {inputs} --output-dir {TMP}/run/out --journal {JOURNAL} "
        f"--samples 600 --power-period-ms 50 --deadline-s {LIMIT_S:g} --marker test/1 --detach"
    )


def test_probe_shows_no_more_than_the_profile_has(adb_port: int, phones: VirtualPhones) -> None:
    found = {}
    for phone in phones.phones[:2]:
        lines = events(installed(adb_port, phone).shell(f"{ON_PHONE} probe"))
        assert (lines[0]["event"], lines[-1]["event"]) == ("hello", "result")
        found[phone.profile] = {line["facts"]["api"] for line in lines if line["event"] == "probe"}
    assert "opencl" in found["nexus_5"]
    assert "vulkan" not in found["nexus_5"]
    assert found["nexus_5"] <= found["galaxy_s7"]


def test_the_power_of_a_run_is_the_phone_s(adb_port: int, phone: PhoneStatus, plan: Path, run_command: str) -> None:
    adb = installed(adb_port, phone)
    adb.shell(f"rm -rf {TMP}/run; mkdir -p {TMP}/run")
    assert adb("push", str(plan), f"{TMP}/run/").returncode == 0
    pid = json.loads(adb.shell(run_command.replace("--samples 600", "--samples 1000000")))["pid"]

    def power() -> list[dict[str, Any]]:
        text, _, _ = adb.shell(f"cat {JOURNAL}").rpartition("\n")
        return [line for line in events(text) if line["event"] == "power"]

    eventually(lambda: len({line["current_ua"] for line in power()}) > 1)  # its gauge is read once a second
    assert all(line["current_ua"] < 0 and line["status"] == "Discharging" for line in power())
    # A driver that is starting its compiler is a second process of this command line for an instant.
    assert int(adb.shell(f"{ON_PHONE} stop --marker-prefix test/1")) in (1, 2)
    eventually(lambda: adb("shell", f"kill -0 {pid}").returncode == 1)
    adb.shell(f"rm -rf {TMP}/run")


def test_a_run_survives_the_cable(
    adb_port: int, control: ControlClient, phone: PhoneStatus, plan: Path, run_command: str
) -> None:
    adb = installed(adb_port, phone)
    adb.shell(f"rm -rf {TMP}/run; mkdir -p {TMP}/run")
    assert adb("push", str(plan), f"{TMP}/run/").returncode == 0
    pid = json.loads(adb.shell(run_command))["pid"]
    assert adb("shell", f"kill -0 {pid} && cat /proc/{pid}/stat").stdout.startswith(f"{pid} ".encode())
    control.fault(phone.name, Unplug(seconds=0.5))
    assert adb("shell", "true").returncode != 0 or control.phones(phone.name)[0].faults == []
    eventually(lambda: control.phones(phone.name)[0].faults == [])
    adb.connect()
    eventually(lambda: '"event":"result"' in adb.shell(f"tail -n 1 {JOURNAL}"))
    lines = events(adb.shell(f"cat {JOURNAL}"))
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    assert sum(line["event"] == "sample" and line["phase"] == "timed" for line in lines) == 600
    assert "slot" in {line["step"] for line in lines if line["event"] == "setup"}
    assert any(line["event"] == "power" for line in lines)
    (output,) = [line for line in lines if line["event"] == "output"]
    assert adb.shell(f"sha256sum {output['file']}").split()[0] == output["sha256"]
    adb.shell(f"rm -rf {TMP}/run")


def test_a_killed_agent_leaves_a_journal_without_a_last_word(
    adb_port: int, control: ControlClient, phone: PhoneStatus, plan: Path, run_command: str
) -> None:
    adb = installed(adb_port, phone)
    adb.shell(f"rm -rf {TMP}/run; mkdir -p {TMP}/run")
    assert adb("push", str(plan), f"{TMP}/run/").returncode == 0
    pid = json.loads(adb.shell(run_command.replace("--samples 600", "--samples 1000000")))["pid"]
    control.fault(phone.name, KillAgent())
    eventually(lambda: adb("shell", f"kill -0 {pid}").returncode == 1)
    lines = events(adb.shell(f"cat {JOURNAL}"))
    assert lines[0]["event"] == "hello"
    assert lines[-1]["event"] not in ("result", "error")
    adb.shell(f"rm -rf {TMP}/run")
