"""Jobs for the tests of the worker, and a workbench that remembers what was reported."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from orchestrator.model.device import Api, Device, Precision
from orchestrator.model.enrolment import Enrolment
from orchestrator.model.experiment import Conditions, Measure, Sampling, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.power import GaugeCalibration
from orchestrator.model.record import Outcome, Record
from orchestrator.system.config import Settings
from tests.waiting import eventually
from virtual_phones.control import PhoneStatus
from virtual_phones.faults import BatteryLevel
from workers.devices.fleet import Member
from workers.devices.probe import read_state
from workers.enrolment import store

from .conftest import Wiring


def assignment_of(
    serial: str,
    sampling: dict[str, Any],
    conditions: dict[str, Any] | None = None,
    *quantities: str,
    api: Api = Api.CPU,
    **axes: int | str | bool,
) -> Assignment:
    """A block of a small network; power is measured where it is named."""
    options = {"threads": 1, **axes} if api is Api.CPU else axes
    job = Job(
        experiment_id="e1",
        cell=Cell(workload=Workload(network="lenet"), backend=api, precision=Precision.FP32, options=options),
        block=0,
        candidates=(serial,),
        sampling=Sampling.model_validate(sampling),
        conditions=Conditions.model_validate(conditions or {}),
        measure=Measure.model_validate({"quantities": ("latency", "memory", *quantities), "power_period": "50 ms"}),
    )
    return Assignment(serial=serial, host="testhost", job_id=job.job_id, job=job, attempt=1, token=1, ttl_s=15.0)


def know_phones(settings: Settings, lab: Wiring) -> None:
    """Let a farm find the control socket of the lab's phones, as if it had started them."""
    folder = settings.state / "virtual"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(lab.phones.control.path.parent / "phones.json", folder / "phones.json")


def enrolled(settings: Settings, member: Member | Device) -> Enrolment:
    """A calibration as the load steps would find it: tests of blocks need not wait for them."""
    gauge = GaugeCalibration(refresh_ns=250_000_000, discharging_sign=-1, noise_a=0.003, method="load steps")
    serial, fingerprint = member.facts.serial, member.facts.fingerprint
    profile = Enrolment(serial=serial, fingerprint=fingerprint, enrolled_at=time.time(), gauge=gauge)
    return store.save(settings.state, profile)


def charge(lab: Wiring, phone: PhoneStatus, connection: Any, percent: int = 80) -> None:
    """Returns when the phone itself says so."""
    lab.phones.control.fault(phone.name, BatteryLevel(level=percent / 100))
    eventually(lambda: round(read_state(connection, "phone").battery_percent or 0) == percent)


def wiring_file(settings: Settings, text: str) -> None:
    Path(settings.state).mkdir(parents=True, exist_ok=True)
    (settings.state / "wiring.yaml").write_text(text)


BUSY = {"drift", "throttled", "background_load", "idle_differs", "sampling_gap"}
"""The causes that a busy machine may give a block."""


def ok(record: Record) -> Record:
    """It was measured to its end; that this machine had other work meanwhile is no fault of the farm's."""
    assert record.outcome is Outcome.OK or record.cause in BUSY, record.reasons
    return record


def begun(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Attempts that began, of an experiment's: on a busy machine a line of short blocks ends early, and hands back what
    waits in it."""
    return [record for record in records if record["cause"] != "handed_back"]
