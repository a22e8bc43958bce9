"""The rules that every engine keeps to, whoever wrote it: those that ship, and one of a user's own in one file."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model.device import OURS, Api, Device, DeviceFacts, Source
from orchestrator.model.errors import LeaseLost, SetupError, Unsupported
from orchestrator.model.experiment import Conditions, Experiment, Measure, Sampling, Workload
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.spec.expansion.expand import expand
from workers.claim import JobCancelled
from workers.devices.workstation import CPU_SERIAL
from workers.engines import Engine, Engines, Host, Work

from .conftest import Wiring, installed
from .jobs import enrolled, know_phones
from .test_run import Runner, agents, assignment, here, leftovers, there

__all__ = ["here", "there"]

OWN = Path(__file__).resolve().parents[2] / "own_engines"
SHAPES: dict[str, tuple[Workload, Workload]] = {
    "command": (Workload(command="sleep 0.1"), Workload(command="sleep 0.11")),
    "onnxruntime": (Workload(network="lenet"), Workload(network="lenet", seed=2)),
    "pocketfarm": (Workload(network="lenet"), Workload(network="lenet", seed=2)),
    "wait": (Workload(wait=0.1), Workload(wait=0.2)),
    "nap": (Workload(network="lenet"), Workload(network="alexnet")),
}
"""Two workloads of each engine that are to be two programs."""
NAMES = tuple(SHAPES)
ALIKE = {"litert", "mnn", "ncnn", "onnxruntime_genai", "openvino", "torch"}
"""Engines that are `onnxruntime` but for their driver: `test_packaged.py`, `test_answering_engines.py`."""
BROUGHT = {"benchmark_model", "benchncnn", "executor_runner", "llama.cpp", "mnn_benchmark", "mnn_llm_bench"} | {
    "onnxruntime_perf_test"
}
"""Engines that are `command` but for their words and readers: `test_engine_folders.py`."""
SAMPLES = 3
ENDLESS = Sampling(warmup=0, samples=100_000, deadline="4 h")


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    return Engines(Host.alone(installed(tmp_path_factory.mktemp("engines"), "onnxruntime")), OWN)


def block(name: str, serial: str, sampling: Sampling | None = None, which: int = 0) -> Assignment:
    given = Sampling(warmup=0, samples=SAMPLES) if sampling is None else sampling
    options: dict[str, Any] = {} if name == OURS.name else {"engine": name}
    return assignment(serial, Api.CPU, sampling=given, workload=SHAPES[name][which], **options)


def declared(engine: Engine, record: Record) -> None:
    """Every word of a record is the farm's or its engine's."""
    words = {str(doubt.code).removeprefix(f"{engine.name}.") for doubt in record.doubts if "." in str(doubt.code)}
    assert words <= engine.doubts.keys() and all(doubt.remedy for doubt in record.doubts)
    if record.outcome in (Outcome.KILLED, Outcome.INVALID):
        assert engine.causes.get(record.cause) is record.outcome


def test_a_host_has_these_engines(engines: Engines) -> None:
    assert {each.name for each in engines} - ALIKE - BROUGHT == {*NAMES}, "give it two workloads in `SHAPES`"
    with pytest.raises(Unsupported, match=r"it has: command, .*benchmark_model, .*, litert, .*, wait, nap"):
        engines.engine("other", "x")


@pytest.mark.parametrize("name", NAMES)
def test_a_block_becomes_a_record(name: str, there: Runner, lab: Wiring, engines: Engines) -> None:
    """A run in a session has its samples, its program, and the conditions that held."""
    record = there(block(name, lab.serial))
    assert record.outcome in (Outcome.OK, Outcome.INVALID), record.reasons
    assert len([sample for sample in record.samples if sample.phase == "timed"]) == SAMPLES
    assert record.provenance.engine == name and record.provenance.program_hash
    assert {proof.name for proof in record.conditions} >= {"awake", "battery_temp"} and record.state_after
    declared(engines.engine(name), record)
    assert Record.model_validate_json(record.model_dump_json()) == record
    assert leftovers(there, lab.serial) == []
    told = json.loads(record.model_dump_json())
    assert ("engine" in told["provenance"]) is (name != OURS.name)
    told["provenance"]["plan_hash"] = told["provenance"].pop("program_hash")
    assert Record.model_validate(told) == record, "records of before call it so"


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_its_hash(name: str, here: Runner, engines: Engines, tmp_path: Path) -> None:
    """Another host makes the same of the same, and what shapes it makes another."""
    member = here.bench.fleet.member(CPU_SERIAL)

    def hashed(own: Engines, which: int) -> str:
        work = Work(block(name, CPU_SERIAL, which=which), member, lambda: None, lambda *_: None)
        return own.engine(name).prepare(work).program_hash

    one, other = hashed(engines, 0), hashed(engines, 1)
    assert one and one == hashed(Engines(Host.alone(installed(tmp_path / "other")), OWN), 0) and one != other


@pytest.mark.parametrize("name", NAMES)
def test_cancelled_in_mid_run_nothing_goes_on(name: str, here: Runner) -> None:
    cancelled = threading.Event()
    here.at_sample = cancelled.set

    def check() -> None:
        if cancelled.is_set():
            raise JobCancelled("cancelled")

    record = here(block(name, CPU_SERIAL, ENDLESS), check)
    assert (record.outcome, record.cause) == (Outcome.CANCELLED, "cancelled")
    assert not running(here) and leftovers(here, CPU_SERIAL) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_lost_lease_leaves_the_device_alone(name: str, here: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command reaches the device once the lease is lost; the next session puts in order what was left."""
    lost, after = threading.Event(), list[object]()
    here.at_sample = lost.set
    connection = type(here.bench.fleet.member(CPU_SERIAL).connection)
    shell = connection.shell

    def heard(self: Any, argv: Any, **how: Any) -> Any:
        after.extend([argv] if told.is_set() else [])
        return shell(self, argv, **how)

    told = threading.Event()

    def check() -> None:
        if lost.is_set():
            told.set()
            raise LeaseLost("superseded", device=CPU_SERIAL)

    monkeypatch.setattr(connection, "shell", heard)
    with pytest.raises(LeaseLost):
        here(block(name, CPU_SERIAL, ENDLESS), check)
    assert told.is_set() and after == []
    lost.clear()
    told.clear()
    assert here(block(name, CPU_SERIAL)).outcome in (Outcome.OK, Outcome.INVALID)
    assert not running(here)


@pytest.mark.parametrize("name", NAMES)
def test_killed_by_the_device_is_a_result(name: str, here: Runner, engines: Engines) -> None:
    def kill() -> None:
        def strike() -> None:
            while not done.wait(0.02):
                for pid in running(here):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        threading.Thread(target=strike, daemon=True).start()

    done = threading.Event()
    here.at_sample = kill
    try:
        record = here(block(name, CPU_SERIAL, ENDLESS))
    finally:
        done.set()
    assert (record.outcome, record.cause) == (Outcome.KILLED, "killed"), record.reasons
    declared(engines.engine(name), record)


def running(runner: Runner) -> list[int]:
    """Pids of what this process, or an agent of its device, runs there."""
    return [*agents(runner.bench.fleet.member(CPU_SERIAL).connection.folder), *_own_sleeps()]


def _own_sleeps() -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes()
                parents = {os.getpid(), *_children()}
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if line.startswith(b"sleep\0") and parent in parents:
                    yield int(entry.name)


def _children() -> list[int]:
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]


def test_an_axis_of_an_engines_own_file(here: Runner, engines: Engines) -> None:
    """A host says which there are; an experiment may name them, and what its program is follows."""
    facts = {each.name: each for each in engines.offered(here.bench.fleet.member(CPU_SERIAL).facts)}
    assert [axis.name for axis in facts["nap"].axes] == ["nap_ms"]
    given = block("nap", CPU_SERIAL)
    cell = given.job.cell.model_copy(update={"options": {"engine": "nap", "nap.nap_ms": 200}})
    long, usual = here(given.model_copy(update={"job": given.job.model_copy(update={"cell": cell})})), here(given)
    assert min(sample.duration_ns for sample in long.samples) >= 200e6 > 100e6
    assert long.provenance.program_hash != usual.provenance.program_hash
    matrix = {"engine": [OURS.name, "nap"], "backend": "cpu", "nap.nap_ms": [100, 2000], "threads": [1, 2]}
    made = Experiment.model_validate({"name": "e", "workload": {"network": "lenet"}, "matrix": matrix})
    device = Device.model_validate({"facts": here.bench.fleet.member(CPU_SERIAL).facts, "state": {"health": "ready"}})
    expansion = expand(made, "e", [device.model_copy(update={"engines": tuple(facts.values())})])
    ran = [job.cell.label for job in expansion.jobs if job.block == 0]
    assert sorted(ran) == sorted(f"lenet cpu fp32{rest}" for rest in (
        *(f"{own} threads={count}" for own in ("", " engine=nap nap.nap_ms=100") for count in (1, 2)),))  # fmt: skip
    told = {each.reason for each in expansion.exclusions}
    assert any("2000 is no value of the axis: it has 10 to 1000" in reason for reason in told), told


def test_a_device_offers_what_can_run_there(engines: Engines) -> None:
    facts = DeviceFacts(serial="p", host="h", kind="phone", source=Source.PHONE)
    known = Device.model_validate({"facts": facts, "state": {"health": "ready"}})
    offered = {each.name: each.missing for each in engines.offered(facts)}
    assert {name for name, missing in offered.items() if missing} == {"onnxruntime", *ALIKE}
    assert "not for phones" in offered["onnxruntime"] and known.engines == (OURS,)
    assert "engines" not in known.model_dump(), "hosts and farms of before understand each other"
    lacking = facts.model_copy(update={"tools_missing": ("sleep",)})
    assert next(each.missing for each in engines.offered(lacking) if each.name == "wait")
    host = facts.model_copy(update={"kind": "workstation", "source": Source.WORKSTATION})
    offered = {each.name: each.missing for each in engines.offered(host)}
    assert not offered["onnxruntime"]


MINE = "from workers.engines import Engine\nclass ENGINE(Engine):\n  name, takes = 'mine', ('network',)\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1", "has no `ENGINE`"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("from workers.engines.wait.engine import ENGINE", "there is an engine 'wait' already"),
        ("raise SystemExit(3)", "SystemExit"),
        ("from workers.engines import Engine as ENGINE", "AttributeError"),
        (MINE, "abstract"),
        (MINE.replace("mine", "Mine 1"), "name"),
        (MINE.replace("('network',)", "()"), "takes"),
        (MINE + "  prepare = None\n  def __init__(self, host): raise OSError('no driver')\n", "no driver"),
        (MINE + "  prepare = None\n  def lacks(self, device): return device.soc[9]\n", ""),
    ],
)
def test_a_file_that_is_no_engine_is_named(text: str, told: str, tmp_path: Path) -> None:
    """One that fails when a device is asked for leaves its host alone."""
    (tmp_path / "mine.py").write_text(text)
    with nullcontext() if not told else pytest.raises(SetupError, match=told):
        *_, mine = Engines(Host.alone(tmp_path), tmp_path).offered(
            DeviceFacts(serial="p", host="h", kind="phone", source=Source.PHONE)
        )
        assert mine.name == "mine" and "IndexError" in mine.missing


@pytest.mark.parametrize("name", NAMES)
def test_the_supply_is_cut_and_the_meter_measures(name: str, there: Runner, lab: Wiring) -> None:
    """The record's times are of one clock, whoever measured: a load that the meter saw has an energy."""
    know_phones(there.bench.settings, lab)
    enrolled(there.bench.settings, there.bench.fleet.member(lab.serial))
    given = block(name, lab.serial, Sampling(warmup=0, samples=10, load="2 s", idle="500 ms"))
    measure = Measure.model_validate({"quantities": ["latency", "power"], "power_source": "model"})
    conditions = Conditions.model_validate({"supply": "cut"})
    job = given.job.model_copy(update={"measure": measure, "conditions": conditions})
    record = there(given.model_copy(update={"job": job}))
    assert record.outcome in (Outcome.OK, Outcome.INVALID), record.reasons
    (supply,) = [proof for proof in record.conditions if proof.name == "supply"]
    assert supply.restored and supply.held.startswith("cut by virtual")
    (series,) = record.series
    first, last = record.samples[0], record.samples[-1]
    assert series.t_ns[0] < first.start_ns and last.start_ns + last.duration_ns < series.t_ns[-1] + 10**9
