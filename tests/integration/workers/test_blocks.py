"""The course of a block on a virtual phone: rests, load, cut supply, a phone that is away meanwhile."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kernels.frontend.load import load_workload
from kernels.options import Options
from kernels.tuning import Database, Found, distinct
from orchestrator.model.device import Api, DeviceState
from orchestrator.model.live.announcement import Phase
from orchestrator.model.record import ConditionProof, DoubtCode, Outcome, Record
from orchestrator.system.config import Settings
from tests.waiting import LIMIT_S, eventually
from virtual_phones.faults import (
    Charging,
    CoresOffline,
    KernelLimit,
    KillAgent,
    PowerButton,
    Reboot,
    RestartAdbd,
    Throttle,
    Unplug,
)
from workers.devices.admit import enrol_phone
from workers.devices.fleet import Fleet
from workers.devices.probe import read_adbd, read_state
from workers.engines import Engines, Host
from workers.engines.pocketfarm.agent_block import DISCHARGING_S
from workers.engines.pocketfarm.plans.plan_store import Plans
from workers.engines.pocketfarm.plans.tuned_choices import FILE, key_of
from workers.execution.run_job import Workbench, run_job
from workers.session.conditions.clock_nodes import read_node

from .conftest import Wiring
from .jobs import assignment_of, charge, enrolled, know_phones, ok, wiring_file

pytestmark = pytest.mark.long

SHORT = {"idle": "1 s", "load": "2 s", "warmup": 5, "samples": 5, "deadline": "40 s"}


class Bench:
    """A worker with the lab's phone; `at` is called once when a phase is first reported."""

    def __init__(self, settings: Settings, lab: Wiring, engines: Engines) -> None:
        self.settings, self.lab = settings, lab
        self.bench = Workbench(settings, Fleet(), engines, "worker-1")
        self.member, state = enrol_phone(lab.connection, settings)
        self.bench.fleet.enrol(self.member, state)
        self.at: dict[str, Callable[[], None]] = {}
        self._threads: list[threading.Thread] = []

    def __call__(
        self,
        sampling: dict[str, Any],
        conditions: dict[str, Any] | None = None,
        *quantities: str,
        api: Api = Api.CPU,
        **options: Any,
    ) -> Record:
        job = assignment_of(self.lab.serial, sampling, conditions, *quantities, api=api, **options)
        return run_job(job, self.bench, lambda: None, self._report)

    def _report(self, phase: Phase, done: int, total: int, last_ms: float | None, *_: object) -> None:
        self.at.pop("sample" if last_ms is not None else phase, lambda: None)()

    def later(self, act: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=act))
        self._threads[-1].start()

    def close(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    return Engines(Host.alone(tmp_path_factory.mktemp("plans-of-blocks")))


@pytest.fixture
def there(lab_settings: Settings, lab: Wiring, engines: Engines) -> Iterator[Bench]:
    know_phones(lab_settings, lab)
    bench = Bench(lab_settings, lab, engines)
    enrolled(lab_settings, bench.member)
    charge(lab, lab.phones.phones[0], lab.connection)
    yield bench
    bench.close()
    lab.phones.control.fault(lab.serial, Charging(on=False))


def state_of(lab: Wiring) -> DeviceState:
    return read_state(lab.connection, "phone")


def plug_in(lab: Wiring) -> None:
    """Returns when the gauge itself says so: it looks at its own pace."""
    lab.phones.control.fault(lab.serial, Charging(on=True))
    eventually(lambda: read_node(lab.connection, "/sys/class/power_supply/battery/status") == "Charging")


def switch_by(there: Bench, cut: list[str], restore: list[str]) -> None:
    """Let the wiring file say by which programs the supply is switched."""
    supply = json.dumps({"command": {"cut": cut, "restore": restore}})
    wiring_file(there.settings, f"devices: {{{there.lab.serial}: {{supply: {supply}}}}}")


def proof(record: Record, name: str) -> ConditionProof:
    return next(each for each in record.conditions if each.name == name)


def test_a_block_rests_warms_up_loads_and_rests(there: Bench, lab: Wiring) -> None:
    lab.connection.shell(["settings", "put", "system", "screen_off_timeout", "1000"])
    record = ok(there({**SHORT, "warmup_stable": "50 %"}, {"screen_dimmed": True, "airplane_mode": False}, "power"))
    assert [phase.phase for phase in record.phases] == ["idle_before", "warmup", "load", "idle_after"]
    lasted = {phase.phase: (phase.end_ns - phase.start_ns) / 1e9 for phase in record.phases}
    assert lasted["idle_before"] >= 1.0 and lasted["load"] >= 2.0 and lasted["idle_after"] >= 1.0
    assert sum(sample.phase == "timed" for sample in record.samples) > 5, "the load went on for its two seconds"
    assert record.power and record.sampler is not None and record.sampler.readings >= len(record.power) > 20
    assert record.clock is not None, "what puts its readings onto this host's clock"
    began, ended = (record.clock.to_unix_s(record.power[n].t_ns) for n in (0, -1))
    assert record.started_at < began < ended < record.ended_at
    truth_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    assert abs(record.clock.to_unix_s(0) - truth_s) <= record.clock.residual_ns * 1e-9 + 0.05
    assert record.gauge is not None and record.gauge.method == "load steps"
    dimmed = proof(record, "screen")
    assert (dimmed.proven, dimmed.restored) == (True, True) and "screen_brightness_mode=1" in dimmed.before
    awake = proof(record, "awake")
    assert awake.held == "Awake, no time-out; at the end Awake, no time-out" and awake.proven and awake.restored
    assert record.suspended_s == pytest.approx(0.0, abs=1e-3)
    timeout = ["system", "screen_off_timeout"]
    assert lab.connection.shell(["settings", "get", *timeout]).stdout == b"1000\n", "put back"
    lab.connection.shell(["settings", "put", *timeout, "30000"])
    assert proof(record, "battery_percent").proven and not proof(record, "thermal_status").proven, "Android 8 has none"
    codes = {doubt.code for doubt in record.doubts}
    assert {DoubtCode.CONDITION_UNPROVEN, DoubtCode.SHORT_LOAD, DoubtCode.MODELLED_POWER} <= codes
    layers = [layer.layer for layer in record.layer_memory]
    assert len(layers) == len(set(layers)) > 3 and any(layer.weight_bytes for layer in record.layer_memory)
    assert Record.model_validate_json(record.model_dump_json()) == record


def test_layers_that_refuse_the_granularity_are_told(there: Bench) -> None:
    """LeNet's 20 and 50 channels: over one output the latter are no multiple of four, so that `auto` has its layer."""
    record = ok(there({"samples": 2, "deadline": "10 min"}, api=Api.OPENCL, algorithm="dot", granularity=1))
    refused = {each.layer: each.refused for each in record.layer_memory if each.refused}
    (doubt,) = (each for each in record.doubts if each.code is DoubtCode.LAYERS_REFUSED)
    assert (
        len(refused) == 1
        and "50 channels over a granularity of 1" in doubt.detail
        and next(iter(refused)) in doubt.detail
    )


def test_a_cold_block_finds_no_compiled_program(there: Bench) -> None:
    def from_cache(sampling: dict[str, Any]) -> set[bool]:
        record = ok(there({**sampling, "deadline": "10 min"}, api=Api.OPENCL))  # compiling may take minutes
        return {step.cached for step in record.setup if step.step == "build"}

    from_cache({"samples": 2})
    assert from_cache({"samples": 2}) == {True}
    assert from_cache({"mode": "cold"}) == {False}


@pytest.mark.parametrize(("affinity", "cores"), [("little", "0,1"), ("big", "2,3")])
def test_the_agent_is_bound_to_a_cluster(there: Bench, affinity: str, cores: str) -> None:
    record = ok(there({"samples": 3}, {"affinity": affinity}))
    bound = proof(record, "affinity")
    assert bound.wanted == f"{affinity}: {cores}"
    assert bound.held.endswith(" of the host") and not bound.proven, "a virtual phone's cores share the host's"


def test_a_block_takes_what_was_tuned_for_its_cores(there: Bench, tmp_path: Path) -> None:
    bench, facts = replace(there.bench, engines=Engines(Host.alone(tmp_path))), there.member.facts

    def plan_of(affinity: str) -> str:
        """A thread for each core."""
        given = assignment_of(there.lab.serial, {"samples": 2}, {"affinity": affinity})
        job = given.job.model_copy(update={"cell": given.job.cell.model_copy(update={"options": {}})})
        record = run_job(given.model_copy(update={"job": job}), bench, lambda: None, lambda *_: None)
        return ok(record).provenance.program_hash

    plain = plan_of("any")
    assert plan_of("0") == plain
    conv = next(iter(distinct(load_workload(network="lenet", onnx=None, seed=1), Options("cpu"))))
    database = Database(tmp_path / FILE)
    database.add(
        Found(
            device=key_of(facts, Api.CPU, 1), precision="fp32", conv=conv, algorithm="im2col", tile="", ms=1.0,
            default="implicit_gemm", tried=2, kept=True, at=1.0,
        )
    )  # fmt: skip
    database.save()
    assert plan_of("0") != plain
    assert (plan_of("any") == plain) == (facts.cores > 1)


def test_a_supply_is_cut_for_the_block_and_restored(there: Bench, lab: Wiring) -> None:
    plug_in(lab)
    record = ok(there(SHORT, {"supply": "cut"}, "power"))
    assert record.state_before is not None and record.state_before.charging
    cut = proof(record, "supply")
    assert (cut.proven, cut.restored, cut.before) == (True, True, "a supply was connected")
    assert cut.held.startswith("cut by virtual; battery: ")
    window = record.phases[0].start_ns, record.phases[-1].end_ns
    assert {p.status for p in record.power if window[0] <= p.t_ns <= window[1]} == {"Discharging"}
    assert state_of(lab).charging, "restored"
    assert not list((there.settings.state / "supply").glob("*.json"))


def test_a_hub_that_cuts_the_data_lines_too(there: Bench, lab: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.engines.agent.request.SETUP_S", 4.0)
    control = [sys.executable, "-m", "virtual_phones.control", str(lab.phones.control.path), lab.serial, "fault"]
    words = {on: [*control, "supply", "--on", on, "--with-data", "on"] for on in ("on", "off")}
    switch_by(there, words["off"], words["on"])
    plug_in(lab)
    seen: list[str] = []

    def look_on() -> None:
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end and "supply" not in lab.phones.control.phones(lab.serial)[0].faults:
            time.sleep(0.05)
        while time.monotonic() < end and "supply" in lab.phones.control.phones(lab.serial)[0].faults:
            seen.append(str([row.state for row in lab.server.devices()]))
            time.sleep(0.05)
        lab.connect()  # the adb server's own next try is ten seconds away

    there.later(look_on)
    record = ok(there(SHORT, {"supply": "cut"}, "power"))
    assert seen and "['device']" not in seen[-5:], "it was away"
    assert proof(record, "supply").held.startswith("cut by command") and proof(record, "supply").restored
    assert DoubtCode.RESUMED not in {doubt.code for doubt in record.doubts}, "it was away on purpose"
    assert [phase.phase for phase in record.phases] == ["idle_before", "warmup", "load", "idle_after"]
    assert state_of(lab).charging, "restored"


def test_a_supply_that_is_not_really_cut_contaminates(
    there: Bench, lab: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DISCHARGING_S, "cut", 1.0)
    switch_by(there, ["true"], ["true"])
    plug_in(lab)
    record = there(SHORT, {"supply": "cut"}, "power")
    assert (record.outcome, record.cause) == (Outcome.LOST, "power_contaminated"), record.reasons
    assert "some hubs switch the data lines" in record.reasons[0]


def test_cores_that_are_offline_are_waited_for(there: Bench, lab: Wiring) -> None:
    lab.phones.control.fault(lab.serial, CoresOffline(cores=2))
    for affinity in ("big", "3"):
        record = there({"samples": 3}, {"affinity": affinity})
        assert (record.outcome, record.cause) == (Outcome.LOST, "condition_not_met"), record.reasons
        assert "are offline now; online: 0,1" in record.reasons[0]
    ok(there({"samples": 3}, {"affinity": "little"}))
    lab.phones.control.clear()
    there.at = {"pushing": lambda: lab.phones.control.fault(lab.serial, CoresOffline(cores=2))}
    gone = there({"samples": 3}, {"affinity": "big"})
    assert (gone.outcome, gone.cause) == (Outcome.LOST, "device_error"), gone.reasons
    assert "offline now; online are 0-1" in gone.reasons[0]


def test_a_phone_on_a_charger_is_no_place_for_discharging(there: Bench, lab: Wiring) -> None:
    plug_in(lab)
    record = there(SHORT, {"supply": "discharging"})
    assert (record.outcome, record.cause) == (Outcome.LOST, "condition_not_met"), record.reasons


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"clocks": "locked"}, "needs root"),
        ({"settled": True}, "temperature at rest is not known"),
        ({"airplane_mode": True}, "Android 11 or later"),
    ],
)
def test_what_the_phone_cannot_do_is_refused_before_time_is_spent(
    there: Bench, conditions: dict[str, Any], words: str
) -> None:
    reported: list[str] = []
    there.at = {"compiling": lambda: reported.append("compiling"), "pushing": lambda: reported.append("pushing")}
    record = there(SHORT, conditions)
    assert (record.outcome, record.cause) == (Outcome.FAILED, "unsupported")
    assert words in record.reasons[0] and reported == []


def test_a_mistake_in_the_lab_file_is_told_with_its_place(there: Bench, lab: Wiring) -> None:
    wiring_file(there.settings, f"devices:\n  {lab.serial}:\n    reference_temp: 24\n")
    record = there(SHORT)
    assert (record.outcome, record.cause) == (Outcome.FAILED, "spec")
    assert "wiring.yaml:3:21: " in record.reasons[0] and "has no unit" in record.reasons[0]


def test_the_cable_is_pulled_while_the_phone_rests(there: Bench, lab: Wiring) -> None:
    def pull() -> None:
        lab.phones.control.fault(lab.serial, Unplug(seconds=2.0))
        there.later(lab.connect)

    there.at = {"running": pull}
    record = ok(there({**SHORT, "idle": "2 s"}, None, "power"))
    assert DoubtCode.RESUMED in {doubt.code for doubt in record.doubts}
    assert [phase.phase for phase in record.phases] == ["idle_before", "warmup", "load", "idle_after"]
    timed = [sample.index for sample in record.samples if sample.phase == "timed"]
    assert timed == list(range(timed[0], timed[0] + len(timed)))


def test_a_kernel_that_the_driver_refuses_is_planned_within_its_limit(
    there: Bench, lab: Wiring, tmp_path: Path
) -> None:
    there.bench = replace(there.bench, engines=Engines(Host.alone(tmp_path)))
    sampling = {"samples": 2}
    plain = ok(there(sampling, api=Api.OPENCL))
    assert plain.replans == ()
    cell = assignment_of(lab.serial, sampling, api=Api.OPENCL).job.cell
    programs = Plans(tmp_path).plan(cell, there.member.facts).plan.programs
    kernel = next(program.kernel for program in programs if program.kernel.startswith("conv_"))
    lab.phones.control.fault(lab.serial, KernelLimit(kernel=kernel, work_group=5))
    record = ok(there(sampling, api=Api.OPENCL))
    (replan,) = record.replans
    assert (replan.kernel, replan.limit) == (kernel, 5) and replan.work_group > 5
    assert "this kernel allows 5 on this device" in replan.reason and "CL_INVALID_WORK_GROUP_SIZE" in replan.reason
    assert record.provenance.program_hash != plain.provenance.program_hash
    assert len([sample for sample in record.samples if sample.phase == "timed"]) == 2
    again = ok(there(sampling, api=Api.OPENCL))
    assert (again.replans, again.provenance.program_hash) == ((), record.provenance.program_hash), "it is known by now"


def test_a_run_survives_a_restart_of_adbd(there: Bench, lab: Wiring) -> None:
    def restart() -> None:
        lab.phones.control.fault(lab.serial, RestartAdbd(seconds=1.0))
        lab.phones.control.fault(lab.serial, Throttle(share=1.0, visible=False))
        there.later(lab.connect)

    there.at = {"sample": restart}
    before = read_adbd(lab.connection)
    lab.phones.control.fault(lab.serial, Throttle(share=0.1, visible=False))  # so slow that the restart meets it
    record = ok(there({"samples": 12_000, "deadline": "60 s"}))
    assert DoubtCode.RESUMED in {doubt.code for doubt in record.doubts}
    assert "" != read_adbd(lab.connection) != before
    assert record.state_after is not None and proof(record, "awake").restored


def test_an_agent_that_ends_with_adbd_is_lost_and_not_killed(there: Bench, lab: Wiring) -> None:
    """Some phones do it when their supply is cut."""

    def restart() -> None:
        lab.phones.control.fault(lab.serial, RestartAdbd(seconds=1.0, kills=True))
        there.later(lab.connect)

    plug_in(lab)
    there.at = {"sample": restart}
    record = there({**SHORT, "load": "20 s"}, {"supply": "cut"})
    assert (record.outcome, record.cause) == (Outcome.LOST, "adbd_restarted"), record.reasons
    assert proof(record, "supply").restored and proof(record, "awake").restored
    there.at = {"sample": lambda: lab.phones.control.fault(lab.serial, KillAgent())}
    killed = there({**SHORT, "load": "20 s"})
    assert (killed.outcome, killed.cause) == (Outcome.KILLED, "killed"), "adbd is the same"


def test_a_phone_that_sleeps_in_mid_block_is_found_out_by_its_clocks(there: Bench, lab: Wiring) -> None:
    def press() -> None:
        lab.phones.control.fault(lab.serial, PowerButton())
        lab.phones.control.fault(lab.serial, Unplug(seconds=2.0))
        there.later(lab.connect)

    there.at = {"sample": press}
    # A loaded machine may press seconds after the first sample is told; the phone must still be in its load then.
    record = there({**SHORT, "idle": "0.5 s", "load": "7 s"})
    assert (record.outcome, record.cause) == (Outcome.INVALID, "suspended"), record.reasons
    assert record.suspended_s and record.suspended_s > 0.5
    assert any("the phone slept for" in reason for reason in record.reasons)
    awake = proof(record, "awake")
    assert not awake.proven and awake.held.endswith("at the end Asleep, no time-out") and awake.restored
    ends = [sample.start_ns + sample.duration_ns for sample in record.samples]
    assert max(b - a for a, b in pairwise(ends)) > 5e8, "it slept in a sample, or between two"


def test_a_phone_that_restarts_without_its_supply_is_lost_and_gets_it_back(there: Bench, lab: Wiring) -> None:
    def restart() -> None:
        lab.phones.control.fault(lab.serial, Reboot(seconds=1.0))
        there.later(lab.connect)

    plug_in(lab)
    there.at = {"sample": restart}
    record = there({**SHORT, "load": "20 s"}, {"supply": "cut", "screen_dimmed": True})
    assert (record.outcome, record.cause) == (Outcome.LOST, "transport_lost"), record.reasons
    assert "restarted during the run" in record.reasons[0]
    assert lab.phones.control.phones(lab.serial)[0].charging
    assert proof(record, "supply").restored and not proof(record, "supply").proven
    assert proof(record, "screen").restored


def test_a_phone_by_address_that_left_the_list_is_connected_again(lab: Wiring) -> None:
    lab.disconnect()
    lab.connection.reconnect()
    lab.connect()
    assert lab.connection.shell(["true"]).code == 0
