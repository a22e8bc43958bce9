"""A phone that replays: the agent's protocol, the recording's figures."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kernels.compile
from device_agent.build import binary
from kernels.frontend.load import load_workload, random_inputs
from kernels.options import Limits, Options
from orchestrator.model.event import parse_event
from tests.phones import start_phones
from virtual_phones.control import ControlClient
from virtual_phones.faults import SlowBuild
from virtual_phones.launch import VirtualPhones

from .conftest import TMP, Adb, eventually
from .test_agent import ON_PHONE, events, installed

LATENCY_MS = [20.0, 30.0, 25.0]
RECORDING = {
    "profile": "galaxy_s7",
    "origin": "made up for a test",
    "networks": {"lenet": {"latency_ms": LATENCY_MS, "power": {"time_s": [0, 60], "power_w": [2.0, 2.0]}}},
}
RUN = f"{TMP}/run"


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualPhones]:
    folder = tmp_path_factory.mktemp("replaying")
    recording = folder / "recording.json"
    recording.write_text(json.dumps(RECORDING))
    with start_phones(folder / "phones", [f"replay:{recording}"]) as phones:
        yield phones


@pytest.fixture
def replaying(lone: VirtualPhones, adb_port: int) -> tuple[Adb, ControlClient, str]:
    """adb for the phone, its control socket and its name."""
    return installed(adb_port, lone.phones[0]), lone.control, lone.phones[0].name


@pytest.fixture
def run(replaying: tuple[Adb, ControlClient, str], tmp_path: Path) -> Iterator[Any]:
    """Runs the agent on a network; what it printed."""
    adb = replaying[0]
    adb.shell(f"rm -rf {RUN}; mkdir -p {RUN}")

    def go(options: str, network: str = "lenet", status: int = 0) -> str:
        graph = load_workload(network=network, onnx=None, seed=1)
        plan = tmp_path / "plan"
        kernels.compile.compile_graph(graph, Options(backend="cpu"), Limits()).write(plan)
        for name, array in random_inputs(graph, 1).items():
            (plan / f"{name}.input").write_bytes(array.tobytes())
        assert adb("push", str(plan), f"{RUN}/").returncode == 0
        inputs = " ".join(f"--input {file.stem}={RUN}/plan/{file.name}" for file in plan.glob("*.input"))
        done = adb("shell", f"{ON_PHONE} run --plan {RUN}/plan {inputs} --output-dir {RUN}/out {options}")
        assert done.returncode == status, done
        return done.stdout.decode()

    yield go
    adb.shell(f"{ON_PHONE} stop --marker-prefix replay/")


def test_it_is_labelled_and_answers_as_an_agent(replaying: tuple[Adb, ControlClient, str]) -> None:
    adb = replaying[0]
    assert adb.shell("getprop ro.pocketfarm.source") == "replay\n"
    assert json.loads(adb.shell(f"{ON_PHONE} version"))
    lines = events(adb.shell(f"{ON_PHONE} probe"))
    assert (lines[0]["event"], lines[-1]["event"]) == ("hello", "result")


def test_a_run_has_the_recorded_latencies_in_real_time(replaying: tuple[Adb, ControlClient, str], run: Any) -> None:
    began = time.monotonic()
    told = run("--warmup 1 --samples 5 --idle-ms 400 --power-period-ms 50")
    took_s = time.monotonic() - began
    lines = [json.loads(line) for line in told.splitlines()]
    for line in told.splitlines():
        parse_event(line)
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    assert (lines[0]["event"], lines[-1]["event"], lines[-1]["samples"]) == ("hello", "result", 5)
    samples = [line for line in lines if line["event"] == "sample"]
    assert [s["phase"] for s in samples] == ["warmup"] + ["timed"] * 5
    assert [s["duration_ns"] / 1e6 for s in samples] == (LATENCY_MS * 2)[:6]
    phases = {line["phase"]: line for line in lines if line["event"] == "phase"}
    assert list(phases) == ["idle_before", "warmup", "load", "idle_after"]
    assert phases["load"]["end_ns"] - phases["load"]["start_ns"] == pytest.approx(125e6 + 5e6)
    assert took_s > 0.8 + 0.15
    (output,) = [line for line in lines if line["event"] == "output"]
    sha256 = replaying[0].shell(f"sha256sum {output['file']}").split()[0]
    assert output["sha256"] == sha256
    power = [line for line in lines if line["event"] == "power"]
    (sampler,) = [line for line in lines if line["event"] == "sampler"]
    assert sampler["readings"] == len(power) >= 10
    assert all(line["status"] == "Discharging" for line in power)


def test_a_slow_build_is_slow_in_what_is_replayed_too(replaying: tuple[Adb, ControlClient, str], run: Any) -> None:
    _, control, name = replaying

    def played() -> list[float]:
        lines = [json.loads(line) for line in run("--warmup 0 --samples 3").splitlines()]
        return [line["duration_ns"] / 1e6 for line in lines if line["event"] == "sample"]

    build = hashlib.sha256(binary().read_bytes()).hexdigest()
    control.fault(name, SlowBuild(build=build[:16], share=0.5))
    assert played() == [2 * ms for ms in LATENCY_MS]
    control.fault(name, SlowBuild(build="0" * 16, share=0.5))
    assert played() == LATENCY_MS
    control.clear(name)


def test_short_latencies_of_a_load_are_replayed_by_means(run: Any) -> None:
    lines = [json.loads(line) for line in run("--samples 1 --load-ms 200 --least-sample-us 40000").splitlines()]
    told = [line for line in lines if line["event"] == "sample"]
    assert [(line["duration_ns"], line.get("mean_of", 1)) for line in told] == [
        (20_000_000, 1), *[(25_000_000, 3)] * 3,
    ]  # fmt: skip


def test_its_power_is_the_recorded_one(replaying: tuple[Adb, ControlClient, str], run: Any) -> None:
    adb, control, name = replaying
    pid = json.loads(run(f"--samples 1 --load-ms 200000 --marker replay/1 --journal {RUN}/j --detach"))["pid"]
    eventually(lambda: control.truth(name).power_w == 2.0)
    first = control.truth(name)
    time.sleep(0.5)
    last = control.truth(name)
    assert (last.consumed_j - first.consumed_j) / (last.t_ns - first.t_ns) * 1e9 == pytest.approx(2.0, rel=0.01)
    adb.shell(f"{ON_PHONE} stop --marker-prefix replay/1")  # a busy machine would miss the end of a short load
    assert events(adb.shell(f"cat {RUN}/j"))[0]["pid"] == pid
    eventually(lambda: control.truth(name).power_w == pytest.approx(0.17318))


def test_it_is_stopped_by_its_marker(replaying: tuple[Adb, ControlClient, str], run: Any) -> None:
    adb = replaying[0]
    run(f"--samples 100000 --marker replay/2 --journal {RUN}/j --detach")
    eventually(lambda: '"event":"sample"' in adb.shell(f"cat {RUN}/j"))
    follow = f"{ON_PHONE} follow --journal {RUN}/j --offset 1000000000 --wait-ms"
    assert adb.shell(f"{follow} 1; echo $?") == "3\n", "who follows it is not told that it is over"
    assert adb.shell(f"{ON_PHONE} stop --marker-prefix replay/2").strip().endswith("1")
    assert adb.shell(f"{follow} 10000; echo $?") == "0\n"
    assert events(adb.shell(f"cat {RUN}/j"))[-1]["code"] == "cancelled"


@pytest.mark.parametrize(
    ("network", "options", "code"),
    [
        ("mobilenet_v1", "--samples 1", "unsupported"),
        ("lenet", "--samples 10000 --deadline-s 2", "deadline"),
        ("lenet", "--samples 2 --inferences 5", "unsupported"),
    ],
)
def test_it_fails_as_an_agent_does(run: Any, network: str, options: str, code: str) -> None:
    last = json.loads(run(options, network, 1).splitlines()[-1])
    assert (last["event"], last["code"]) == ("error", code)
