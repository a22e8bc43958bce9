"""Faults that change how fast the real agent is, what it draws and what it may write."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import kernels.compile
from device_agent.build import binary
from kernels.frontend.load import load_workload, random_inputs
from kernels.options import Limits, Options
from virtual_phones.control import ControlClient, PhoneStatus
from virtual_phones.control.__main__ import main
from virtual_phones.faults import BackgroundLoad, ClockCap, KillAgent, SlowBuild, StorageFull, Supply
from virtual_phones.system.processes import ProcessTable

from .conftest import TMP, Adb, eventually
from .test_agent import ON_PHONE, installed

JOURNAL = f"{TMP}/effects/journal.jsonl"


@pytest.fixture
def run_agent(adb_port: int, phone: PhoneStatus, control: ControlClient, tmp_path: Path) -> Any:
    """Starts the agent, detached, on many inferences of a small network on one CPU thread."""
    graph = load_workload(network="lenet", onnx=None, seed=1)
    plan = tmp_path / "plan"
    kernels.compile.compile_graph(graph, Options(backend="cpu"), Limits()).write(plan)
    for name, array in random_inputs(graph, 1).items():
        (plan / f"{name}.input").write_bytes(array.tobytes())
    adb = installed(adb_port, phone)
    adb.shell(f"rm -rf {TMP}/effects; mkdir -p {TMP}/effects")
    assert adb("push", str(plan), f"{TMP}/effects/").returncode == 0
    inputs = " ".join(f"--input {file.stem}={TMP}/effects/plan/{file.name}" for file in plan.glob("*.input"))

    def start() -> Adb:
        adb.shell(
            f"{ON_PHONE} run --plan {TMP}/effects/plan {inputs} --output-dir {TMP}/effects/out --journal {JOURNAL} "
            "--samples 1000000 --threads 1 --power-period-ms 50 --deadline-s 120 --marker effects/1 --detach"
        )
        return adb

    yield start
    control.fault(phone.name, KillAgent())
    adb.shell(f"rm -rf {TMP}/effects")


def journal(phone: PhoneStatus) -> list[dict[str, Any]]:
    """The whole lines that the agent has written so far."""
    lines = (phone.root / JOURNAL.lstrip("/")).read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def timed(phone: PhoneStatus) -> list[int]:
    return [e["duration_ns"] for e in journal(phone) if e["event"] == "sample" and e["phase"] == "timed"]


def test_slower_clocks_stop_the_agent_now_and_again_and_draw_less(
    run_agent: Any, control: ControlClient, phone: PhoneStatus
) -> None:
    """The number of its stops is no measure on a busy machine: it stops when it would have its turn."""

    def mean_w() -> float:
        """Return the mean over a second and a half of the model's time."""
        eventually(lambda: control.truth(phone.name).load > 0)
        first = control.truth(phone.name)
        eventually(lambda: control.truth(phone.name).t_ns > first.t_ns + 1_500_000_000)
        last = control.truth(phone.name)
        return (last.consumed_j - first.consumed_j) / (last.t_ns - first.t_ns) * 1e9

    run_agent()
    eventually(lambda: len(timed(phone)) > 10)
    free_w = mean_w()
    assert not is_stopped(phone, looks=100)
    control.fault(phone.name, ClockCap(share=0.25))
    eventually(lambda: is_stopped(phone))
    before = len(timed(phone))
    assert mean_w() < free_w
    eventually(lambda: len(timed(phone)) > before)
    assert {e["event"] for e in journal(phone)} >= {"sample", "power"}


def test_the_slow_build_is_braked_and_no_other(run_agent: Any, control: ControlClient, phone: PhoneStatus) -> None:
    run_agent()
    eventually(lambda: len(timed(phone)) > 10)
    control.fault(phone.name, SlowBuild(build="0" * 8, share=0.05))
    eventually(lambda: control.truth(phone.name).load > 0)
    assert not is_stopped(phone, looks=100)
    build = hashlib.sha256(binary().read_bytes()).hexdigest()
    control.fault(phone.name, SlowBuild(build=build[:16], share=0.05))
    eventually(lambda: is_stopped(phone))


def is_stopped(phone: PhoneStatus, looks: int = 1) -> bool:
    """Tell whether a process of the phone stands still at this moment, or at one of some moments."""
    paths = [Path(f"/proc/{process.pid}/stat") for process in ProcessTable().of(phone.root)]
    for _ in range(looks):
        if any(path.read_text().rpartition(")")[2].split()[0] == "T" for path in paths):
            return True
        time.sleep(0.001)
    return False


def test_a_background_load_is_in_proc_stat_and_in_the_power(
    adb: Adb, control: ControlClient, phone: PhoneStatus
) -> None:
    def busy() -> tuple[int, int]:
        fields = [int(field) for field in adb.shell("cat /proc/stat").splitlines()[0].split()[1:]]
        return sum(fields) - fields[3], sum(fields)

    control.fault(phone.name, BackgroundLoad(share=0.4))
    before, first = busy(), control.truth(phone.name)
    eventually(lambda: busy()[1] >= before[1] + 200)
    after, last = busy(), control.truth(phone.name)
    assert (after[0] - before[0]) / (after[1] - before[1]) == pytest.approx(0.4, abs=0.02)
    mean_w = (last.consumed_j - first.consumed_j) / (last.t_ns - first.t_ns) * 1e9
    assert mean_w == pytest.approx(0.17318 + 0.4 * (2.92179 - 0.17318), rel=0.02)


def test_what_the_gauge_shows_is_the_truth(adb: Adb, control: ControlClient, phone: PhoneStatus) -> None:
    """Current times voltage, averaged over a steady load, is the model's power, but for the gauge's noise."""
    battery = phone.root / "sys/class/power_supply/battery"
    control.fault(phone.name, BackgroundLoad(share=0.5))
    control.truth(phone.name)  # the load begins now, and the gauge shows it within its refresh period
    readings_w, first = [], control.truth(phone.name)
    end = first.t_ns + 3_000_000_000
    while (last := control.truth(phone.name)).t_ns < end or len(readings_w) < 20:
        if last.t_ns > first.t_ns + 500_000_000:
            current_ua, voltage_uv = (int((battery / f"{name}_now").read_text()) for name in ("current", "voltage"))
            readings_w.append(-current_ua * voltage_uv / 1e12)
        time.sleep(0.02)
    true_w = (last.consumed_j - first.consumed_j) / (last.t_ns - first.t_ns) * 1e9
    assert fmean(readings_w) == pytest.approx(true_w, rel=0.02)
    assert true_w == pytest.approx((0.17318 + 2.92179) / 2, rel=0.01)


def test_an_agent_on_a_full_phone_says_so_in_its_journal(
    run_agent: Any, control: ControlClient, phone: PhoneStatus
) -> None:
    run_agent()
    eventually(lambda: len(timed(phone)) > 10)
    control.fault(phone.name, StorageFull())
    eventually(lambda: journal(phone)[-1]["event"] == "error")
    assert journal(phone)[-1]["code"] == "storage_full"
    eventually(lambda: control.phones(phone.name)[0].agents == 0)


def test_a_port_that_cuts_the_data_too(adb: Adb, control: ControlClient, phone: PhoneStatus) -> None:
    control.fault(phone.name, Supply(on=False, with_data=True))
    eventually(lambda: adb.state() != "device")
    control.fault(phone.name, Supply(on=True))
    adb.connect()
    assert adb.shell("echo back") == "back\n"


def test_the_truth_on_the_command_line(
    control: ControlClient, phone: PhoneStatus, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    for _ in range(2):
        assert main([str(control.path), phone.name, "truth"]) == 0
        (status,) = json.loads(capsys.readouterr().out)
        seen.append((status["t_ns"], status["consumed_j"]))
    (before_ns, before_j), (after_ns, after_j) = seen
    assert after_ns > before_ns
    assert after_j > before_j
    command = [str(control.path), phone.name, "fault", "throttle", "--share", "0.5", "--visible", "off"]
    assert main(command) == 0
    (status,) = json.loads(capsys.readouterr().out)
    assert (status["faults"], status["clock"], status["thermal_status"]) == (["throttle"], 0.5, 0)


def test_the_phone_tells_where_its_control_socket_is(adb: Adb, control: ControlClient) -> None:
    assert adb.shell("getprop ro.pocketfarm.control") == f"{control.path}\n"
