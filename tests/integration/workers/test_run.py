"""Jobs on this host and on a virtual phone, from assignment to record, with the real agent."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onnx import helper

from device_agent.build import binary
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.device import Api, Precision, Reading, Source
from orchestrator.model.errors import LeaseLost, Unsupported
from orchestrator.model.experiment import Conditions, Measure, Sampling, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.live.announcement import Phase
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import DoubtCode, Outcome, Record
from orchestrator.system.config import Settings
from tests.unit.kernels.front.onnx_models import save_model
from tests.waiting import eventually
from virtual_phones.faults import (
    BatteryLevel,
    Fault,
    Garbage,
    KillAgent,
    Reboot,
    StorageFull,
    Throttle,
    Unplug,
)
from workers.claim import JobCancelled
from workers.connection.adb import AdbConnection
from workers.devices.admit import enrol_phone
from workers.devices.device_lock import device_lock
from workers.devices.fleet import Fleet
from workers.devices.install import file_sha256
from workers.devices.probe import read_state
from workers.devices.workstation import CPU_SERIAL, enrol_workstation
from workers.engines import Engines, Host
from workers.engines.models import Models
from workers.engines.pocketfarm.plans.plan_store import Plans
from workers.execution.run_job import Workbench, run_job

from .conftest import Wiring
from .jobs import ok

LENET = Workload(network="lenet")
LONG = Sampling(warmup=0, samples=100_000, deadline="60 s")
"""More samples than a test waits for."""


def assignment(
    serial: str,
    api: Api = Api.OPENCL,
    *,
    sampling: Sampling | None = None,
    conditions: Conditions | None = None,
    quantities: tuple[str, ...] = ("latency", "memory"),
    workload: Workload = LENET,
    precision: Precision = Precision.FP32,
    model_files: dict[str, str] | None = None,
    **options: int | str | bool,
) -> Assignment:
    job = Job(
        experiment_id="e1",
        cell=Cell(workload=workload, backend=api, precision=precision, options=options, model_files=model_files or {}),
        block=0,
        candidates=(serial,),
        sampling=sampling or Sampling(warmup=1, samples=5),
        conditions=conditions or Conditions(),
        measure=Measure.model_validate({"quantities": quantities}),
    )
    return Assignment(serial=serial, host="testhost", job_id=job.job_id, job=job, attempt=1, token=1, ttl_s=15.0)


class Runner:
    """A workbench, and what was reported while a job ran."""

    def __init__(self, settings: Settings, engines: Engines) -> None:
        self.bench = Workbench(settings, Fleet(), engines, "worker-1")
        self.phases: list[Phase] = []
        self.done = 0
        self.reading: Reading | None = None
        """The latest of gauge and clocks."""
        self.at_sample: Callable[[], None] = lambda: None
        """Called once, when a sample has arrived."""
        self._helpers: list[threading.Thread] = []

    def replug(self, lab: Wiring) -> None:
        """Connect it in the background as soon as it is there: the adb server's own next try is ten seconds away."""
        self._helpers.append(threading.Thread(target=lab.connect))
        self._helpers[-1].start()

    def join(self) -> None:
        """Returns when nothing is done to a phone in the background: the next test's may be the same."""
        while self._helpers:
            self._helpers.pop().join()

    def __call__(self, job: Assignment, check: Callable[[], None] = lambda: None) -> Record:
        return run_job(job, self.bench, check, self._report)

    def _report(
        self, phase: Phase, done: int, total: int, last_ms: float | None, reading: Reading | None = None, *_: object
    ) -> None:
        self.reading = reading or self.reading
        if self.phases[-1:] != [phase]:
            self.phases.append(phase)
        self.done = done
        if last_ms is not None:
            act, self.at_sample = self.at_sample, lambda: None
            act()


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    """Compiled once for all tests."""
    return Engines(Host.alone(tmp_path_factory.mktemp("plans")))


@pytest.fixture
def here(settings: Settings, engines: Engines) -> Runner:
    runner = Runner(settings, engines)
    for member, state in enrol_workstation(settings):
        runner.bench.fleet.enrol(member, state)
    return runner


@pytest.fixture
def there(lab_settings: Settings, lab: Wiring, engines: Engines) -> Iterator[Runner]:
    """A runner with the lab's phone."""
    runner = Runner(lab_settings, engines)
    runner.bench.fleet.enrol(*enrol_phone(lab.connection, lab_settings))
    charge(lab, 80)
    yield runner
    runner.join()


def charge(lab: Wiring, percent: int) -> None:
    """Returns when the phone itself says so."""
    lab.phones.control.fault(lab.serial, BatteryLevel(level=percent / 100))
    eventually(lambda: round(read_state(lab.connection, "phone").battery_percent or 0) == percent)


def codes(record: Record) -> set[DoubtCode]:
    return {doubt.code for doubt in record.doubts}


def leftovers(runner: Runner, serial: str) -> list[str]:
    connection = runner.bench.fleet.member(serial).connection
    return connection.shell(["ls", f"{connection.folder}/runs"]).stdout.decode().split()


@pytest.mark.parametrize("api", [Api.OPENCL, Api.VULKAN, Api.CPU])
def test_a_block_on_this_host(here: Runner, api: Api) -> None:
    record = here(assignment(CPU_SERIAL, api))
    assert (record.outcome, record.reasons) == (Outcome.OK, ())
    assert record.source == Source.WORKSTATION
    assert record.runs_on is not None and record.runs_on.api == api and record.runs_on.facts.device_name
    assert [sample.phase for sample in record.samples] == ["warmup"] + ["timed"] * 5
    assert all(sample.duration_ns > 0 for sample in record.samples)
    assert record.checks and all(check.ok for check in record.checks)
    assert {step.step for step in record.setup} >= {"allocate", "upload"}
    assert record.memory is not None and record.memory.device_peak_bytes > 0
    assert record.provenance.program_hash and record.provenance.agent_sha256 and record.provenance.boot_id
    assert DoubtCode.SHARED_HOST in codes(record)
    phases = ["compiling", "waiting", "preparing", "pushing", "waiting", "running", "collecting", "restoring"]
    assert here.phases == phases
    assert leftovers(here, CPU_SERIAL) == []
    assert Record.model_validate_json(record.model_dump_json()) == record


def test_a_block_needs_few_round_trips(there: Runner, lab: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trips that look how far the agent is are not counted."""
    assert there(assignment(lab.serial)).outcome is Outcome.OK  # plan and inputs are on the phone from now on
    asked: list[str] = []
    service = AdbConnection._service

    def counted(connection: AdbConnection, what: str, command: str, deadline_s: float) -> Any:
        asked.append(command)
        return service(connection, what, command, deadline_s)

    monkeypatch.setattr(AdbConnection, "_service", counted)
    assert there(assignment(lab.serial)).outcome is Outcome.OK
    steps = [command for command in asked if " follow --journal " not in command]
    assert len(steps) <= 8 + 2, "where it is not over in a moment, the output and what follows it take one each"


def test_a_block_on_a_virtual_phone(there: Runner, lab: Wiring) -> None:
    record = ok(there(assignment(lab.serial, quantities=("latency", "layers", "memory", "power"))))
    assert record.source == Source.VIRTUAL and record.device.profile == "galaxy_s7"
    assert {DoubtCode.VIRTUAL_DEVICE, DoubtCode.SHARED_HOST} <= codes(record)
    assert record.layers and record.state_before is not None and record.state_after is not None
    assert record.state_before.battery_percent == pytest.approx(80, abs=2)
    assert record.state_before.reading is not None and record.state_before.reading.battery_cycles == 100
    assert all(check.ok for check in record.checks)
    told, last = there.reading, record.power[-1]
    assert told is not None and told.current_raw in {each.current_ua for each in record.power}
    assert told.voltage_v == pytest.approx((last.voltage_uv or 0) * 1e-6, rel=0.1)
    assert told.cpu_hz in {max(each.cpu_khz) * 1000 for each in record.power}


def test_a_side_runs_its_own_build_of_the_agent(there: Runner, lab: Wiring, tmp_path: Path) -> None:
    other = tmp_path / "pocketfarm-agent"
    other.write_bytes(binary().read_bytes() + b"another build")
    sha256 = Artifacts(tmp_path).put(other)
    there.bench = replace(there.bench, engines=Engines(Host.alone(tmp_path)))
    facts = there.bench.fleet.member(lab.serial).facts
    given = assignment(lab.serial, Api.CPU, side="candidate")

    def ran(agent: dict[str, str]) -> Record:
        job = given.job.model_copy(update={"cell": given.job.cell.model_copy(update={"agent": agent})})
        return there(given.model_copy(update={"job": job}))

    record = ran({facts.abi: sha256})
    assert record.outcome is Outcome.OK, record.reasons
    assert record.provenance.agent_sha256 == sha256
    usual = ran({})
    assert usual.provenance.agent_sha256 == file_sha256(binary())
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 9\n")
    assert ran({facts.abi: Artifacts(tmp_path).put(broken)}).outcome is not Outcome.OK, "that is what ran, and no other"
    none = ran({"mips": sha256})
    assert (none.outcome, none.cause) == (Outcome.FAILED, Unsupported.cause)


@pytest.mark.parametrize(
    ("api", "files"),
    [(Api.OPENCL, "etc/OpenCL/vendors/pocl*.icd"), (Api.VULKAN, "usr/share/vulkan/icd.d/lvp_icd*.json")],
)
def test_a_side_runs_behind_its_own_driver(here: Runner, tmp_path: Path, api: Api, files: str) -> None:
    """The same library by another file of it; a file that names no library shows that no other is used."""
    file = next(Path("/").glob(files))
    other, broken = tmp_path / f"next{file.suffix}", tmp_path / f"broken{file.suffix}"
    other.write_bytes(file.read_bytes())
    broken.write_text("{}" if api is Api.VULKAN else "libnone.so\n")
    given = assignment(CPU_SERIAL, api, side="candidate")

    def ran(driver: Path, sha256: str = "") -> Record:
        named = {"driver": str(driver), "driver_sha256": sha256 or file_sha256(driver)}
        cell = given.job.cell.model_copy(update=named)
        return here(given.model_copy(update={"job": given.job.model_copy(update={"cell": cell})}))

    record = ran(other)
    assert record.outcome is Outcome.OK, record.reasons
    assert record.runs_on is not None and record.provenance.driver_file == str(other)
    member = here.bench.fleet.member(CPU_SERIAL)
    assert Path(member.connection.folder, f"cache-{file_sha256(other)[:16]}").is_dir(), "built programs are its own"
    usual = member.facts.api(api)
    assert usual is not None and record.runs_on.facts.driver == usual.driver
    for driver, sha256, why in (
        (broken, "", "does not offer this device"),
        (other, "0" * 64, "another file than at submission"),
        (tmp_path / f"none{file.suffix}", "0" * 64, "cannot be read on this host"),
    ):
        refused = ran(driver, sha256)
        assert (refused.outcome, refused.cause) == (Outcome.FAILED, Unsupported.cause)
        assert why in "".join(refused.reasons)


def test_a_cell_that_the_device_cannot_run_fails_for_good(here: Runner, tmp_path: Path) -> None:
    missing = here(assignment(CPU_SERIAL, workload=Workload(network="no_such_network")))
    assert (missing.outcome, missing.cause) == (Outcome.FAILED, "compile")
    unknown = here(assignment(CPU_SERIAL, colour="blue"))
    assert (unknown.outcome, unknown.cause) == (Outcome.FAILED, "spec")
    assert "colour" in unknown.reasons[0]
    file = save_model(tmp_path / "mine.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"x": (1, 4, 2, 2)}, ["y"])
    here.bench = replace(here.bench, engines=Engines(Host.alone(tmp_path)))
    own = Workload(onnx="mine.onnx", onnx_sha256=Artifacts(tmp_path).put(file))
    unnamed = here(assignment(CPU_SERIAL, Api.OPENCL, workload=own, on_cpu="after none"))
    assert (unnamed.outcome, unnamed.cause) == (Outcome.FAILED, "compile")
    assert "mine has no layer none" in unnamed.reasons[0], "not the name of the kept file"


def test_a_device_that_is_not_here_is_lost(here: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.execution.run_job.ENROL_WAIT_S", 0.1)
    record = here(assignment("gone"))
    assert (record.outcome, record.cause) == (Outcome.LOST, "device_away")


def test_a_full_disk_of_the_host_is_not_blamed_on_the_device(here: Runner, tmp_path: Path) -> None:
    """No file of this process may grow: a plan that is compiled cannot be written, as on a full disk."""
    here.bench = replace(here.bench, engines=Engines(Host.alone(tmp_path)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        record = here(assignment(CPU_SERIAL))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (record.outcome, record.cause) == (Outcome.LOST, "host_fault"), record.reasons
    assert here(assignment(CPU_SERIAL)).outcome is Outcome.OK


def test_a_wrong_answer_is_invalid(here: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Plans(here.bench.settings.state).models.reference(LENET)
    monkeypatch.setattr(Models, "reference", lambda *_: {name: array + 0.5 for name, array in right.items()})
    record = here(assignment(CPU_SERIAL))
    assert (record.outcome, record.cause) == (Outcome.INVALID, "wrong_output")
    assert "differs from the reference" in record.reasons[0]
    assert record.samples, "kept with its reasons"


def test_a_flat_battery_is_a_fact_for_the_scheduler(there: Runner, lab: Wiring) -> None:
    charge(lab, 10)
    record = there(assignment(lab.serial))
    assert (record.outcome, record.cause) == (Outcome.LOST, "condition_not_met")
    assert "below 20 %" in record.reasons[0]
    (device,) = there.bench.fleet.devices()
    assert device.state.ready_at is not None and device.state.ready_at > time.time() + 30
    assert "below 20 %" in device.state.reason


def test_settings_are_put_back_also_by_the_next_session(there: Runner, lab: Wiring) -> None:
    connection = lab.connection

    def brightness() -> str:
        return connection.shell(["settings", "get", "system", "screen_brightness"]).stdout.decode().strip()

    connection.shell(["settings", "put", "system", "screen_brightness", "77"])
    seen: list[str] = []
    there.at_sample = lambda: seen.append(brightness())
    job = assignment(lab.serial, conditions=Conditions(screen_dimmed=True))
    record = there(job)
    assert record.outcome == Outcome.OK, record.reasons
    assert seen == ["1"] and brightness() == "77"

    def lose() -> None:
        if there.phases[-2:] == ["pushing", "waiting"]:  # the agent was started
            raise LeaseLost("superseded", device=lab.serial)

    with pytest.raises(LeaseLost):
        there(job, lose)
    assert brightness() == "1", "a session without a lease touches nothing"
    record = there(assignment(lab.serial))
    assert record.outcome == Outcome.OK, record.reasons
    assert brightness() == "77"


def test_the_cable_drops_and_the_run_goes_on(there: Runner, lab: Wiring) -> None:
    def drop() -> None:
        lab.phones.control.fault(lab.serial, Unplug(seconds=0.5))
        lab.phones.control.fault(lab.serial, Throttle(share=1.0, visible=False))
        there.replug(lab)

    there.at_sample = drop
    lab.phones.control.fault(lab.serial, Throttle(share=0.1, visible=False))  # so slow that the drop meets it
    sampling = Sampling(warmup=0, samples=12_000, deadline="60 s")
    record = ok(there(assignment(lab.serial, sampling=sampling)))
    assert DoubtCode.RESUMED in codes(record)
    assert [sample.index for sample in record.samples] == list(range(12_000))


@pytest.mark.parametrize(
    ("fault", "outcome", "cause"),
    [
        (KillAgent(), Outcome.KILLED, "killed"),
        (Garbage(), Outcome.LOST, "device_sick"),
        (Reboot(seconds=1.0), Outcome.LOST, "transport_lost"),
    ],
)
def test_what_a_phone_does_in_mid_run(there: Runner, lab: Wiring, fault: Fault, outcome: Outcome, cause: str) -> None:
    def strike() -> None:
        lab.phones.control.fault(lab.serial, fault)
        if isinstance(fault, Reboot):
            there.replug(lab)

    there.at_sample = strike
    record = there(assignment(lab.serial, sampling=LONG))
    assert (record.outcome, record.cause) == (outcome, cause), record.reasons
    if not isinstance(fault, Reboot):
        assert record.evidence


@pytest.mark.parametrize(("setup", "builds_cached"), [("cold", False), ("warm", False), ("cached", True)])
def test_a_fresh_process_finds_the_programs_that_the_axis_says(
    there: Runner, lab: Wiring, setup: str, builds_cached: bool
) -> None:
    record = there(assignment(lab.serial, Api.OPENCL, setup=setup))
    assert record.outcome is Outcome.OK, record.reasons
    (build,) = [step for step in record.setup if step.step == "build"]
    assert build.cached is builds_cached
    assert "cache" not in {step.step for step in record.setup}  # what is kept was kept by the run before


def test_a_full_phone_is_sick(there: Runner, lab: Wiring) -> None:
    lab.phones.control.fault(lab.serial, StorageFull())
    conditions = Conditions.model_validate({"free_storage": "0 B"})
    record = there(assignment(lab.serial, conditions=conditions, fuse="none"))
    assert (record.outcome, record.cause) == (Outcome.LOST, "device_sick")
    assert "storage full" in record.reasons[0]


def test_cancelled_in_mid_run(here: Runner) -> None:
    cancelled = threading.Event()
    here.at_sample = cancelled.set

    def check() -> None:
        if cancelled.is_set():
            raise JobCancelled("cancelled")

    record = here(assignment(CPU_SERIAL, sampling=LONG), check)
    assert record.outcome == Outcome.CANCELLED
    member = here.bench.fleet.member(CPU_SERIAL)
    assert agents(member.connection.folder) == []
    assert leftovers(here, CPU_SERIAL) == []


def test_a_stale_agent_is_ended_by_the_next_session(here: Runner) -> None:
    def superseded() -> None:
        if here.done:
            raise LeaseLost("superseded", device=CPU_SERIAL)

    with pytest.raises(LeaseLost):
        here(assignment(CPU_SERIAL, sampling=LONG), superseded)
    folder = here.bench.fleet.member(CPU_SERIAL).connection.folder
    assert len(agents(folder)) == 1, "the device was left alone"
    assert here(assignment(CPU_SERIAL)).outcome == Outcome.OK
    assert agents(folder) == []


@pytest.mark.parametrize("phase", ["claimed", "compiling", "waiting", "preparing", "pushing", "running"])
def test_cancelled_in_any_phase(here: Runner, phase: Phase) -> None:
    """Nothing later begins, and the device is free: also of a session that waits for the device's lock."""

    def check() -> None:
        if phase in ("claimed", *here.phases):
            raise JobCancelled("cancelled")

    unknown = Workload(network="lenet", seed=len(phase) + 1000)  # not compiled by another test
    with ExitStack() as held:
        if phase == "claimed":
            held.enter_context(device_lock(here.bench.settings.state, CPU_SERIAL))
        record = here(assignment(CPU_SERIAL, sampling=LONG, workload=unknown), check)
    assert (record.outcome, record.cause) == (Outcome.CANCELLED, "cancelled")
    assert here.phases[-1:] == ([] if phase == "claimed" else [phase])
    assert agents(here.bench.fleet.member(CPU_SERIAL).connection.folder) == []
    with device_lock(here.bench.settings.state, CPU_SERIAL):
        assert leftovers(here, CPU_SERIAL) == []


def test_a_deadline_ends_the_run(here: Runner) -> None:
    sampling = Sampling(warmup=0, samples=100_000, deadline="1 s")
    record = here(assignment(CPU_SERIAL, sampling=sampling))
    assert (record.outcome, record.cause) == (Outcome.FAILED, "deadline")


def test_a_deadline_ends_compiling(here: Runner) -> None:
    sampling = Sampling(deadline="20 ms")
    record = here(assignment(CPU_SERIAL, sampling=sampling, workload=Workload(network="squeezenet_v1_0", seed=1001)))
    assert (record.outcome, record.cause) == (Outcome.FAILED, "deadline")
    assert "compiling: not done within the block's deadline of 0.02 s" in record.reasons[0]
    assert here.phases == ["compiling"]


def test_two_sessions_never_meet(here: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.session.session.LOCK_WAIT_S", 0.1)
    with device_lock(here.bench.settings.state, CPU_SERIAL):
        record = here(assignment(CPU_SERIAL))
    assert (record.outcome, record.cause) == (Outcome.LOST, "device_busy")


def agents(folder: str) -> list[int]:
    """Pids of agents that run from a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line.startswith(folder.encode()) and b"--marker" in line:
                found.append(int(entry.name))
    return found
