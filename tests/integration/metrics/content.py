"""A farm's content for metrics: four virtual phones, one workstation, one finished and one running experiment.

Written by the farm's own ledger, inventory and leases into real stores; the figures are drawn from a seed.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from redis import Redis

from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.record_stream import RecordStream
from orchestrator.ledger import JobRow, KeepResult, Ledger
from orchestrator.model.device import (
    Api,
    ApiFacts,
    Device,
    DeviceFacts,
    DeviceState,
    Health,
    Precision,
    Reading,
    Source,
)
from orchestrator.model.event import Memory, Sample, Setup
from orchestrator.model.experiment import Experiment, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.live.announcement import HostAnnouncement, Learnt, Progress
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Doubt, DoubtCode, Outcome, Provenance, Record, RunsOn
from orchestrator.queueing.kept import KeptServer, keep_run
from orchestrator.queueing.live import LiveRun
from tests.unit.energy.blocks import EXACT, PHASES, S, load_between, phases, readings
from tests.unit.history.made import kept, nights
from tests.unit.queueing.make import make, request_class, run

PHONES = {
    "galaxy-s7": ("Galaxy S7", "exynos8890", "Mali-T880", "mali"),
    "nexus-5": ("Nexus 5", "msm8974", "Adreno 330", "adreno"),
    "mate-10": ("Mate 10", "kirin970", "Mali-G72", "mali"),
    "sd888-hdk": ("SD888 HDK", "sm8350", "Adreno 660", "adreno"),
}
BLOCKS = 3
LONG_S = 3600.0
"""Longer than all tests take that share one content."""


@dataclass
class Content:
    """The content that was written, for the tests to compare with."""

    devices: list[Device]
    records: list[Record] = field(default_factory=list)
    streams: list[Record] = field(default_factory=list)
    """The records of a third experiment, which have no latency."""
    leased: list[Assignment] = field(default_factory=list)
    jobs: list[JobRow] = field(default_factory=list)
    """The jobs of the finished experiment."""


def device(serial: str, index: int) -> Device:
    """One device of the farm: number 3 is hot, number 2 is offline."""
    model, soc, gpu, vendor = PHONES.get(serial, ("", "x86_64", "llvmpipe", "cpu"))
    phone = serial in PHONES
    facts = DeviceFacts(
        serial=serial, host="lab", kind="phone" if phone else "workstation",
        source=Source.VIRTUAL if phone else Source.WORKSTATION, model=model, soc=soc, gpu=gpu, gpu_vendor=vendor,
        abi="x86_64", profile=serial if phone else "", apis=tuple(api_facts(api) for api in Api),
    )  # fmt: skip
    state = DeviceState(
        health=Health.OFFLINE if index == 2 else Health.READY,
        battery_percent=35.0 + 15 * index if phone else None,
        battery_temp_c=29.5 + 4 * index if phone else None,
        charging=index % 2 == 0 if phone else None,
        thermal_status=int(index == 3) if phone else None,
        free_storage_bytes=(4 + index) << 30,
        ready_at=time.time() + LONG_S if index == 3 else None,
        skin_temp_c=33.5 if phone else None,
        reading=Reading(
            at=time.time() + LONG_S,
            current_raw=-350_000,
            voltage_v=3.9,
            status="Discharging",
            cpu_hz=1_800_000_000,
            gpu_hz=585_000_000,
            cpu_temp_c=45.0,
            gpu_temp_c=44.0,
        )
        if phone and index != 2
        else None,
        seen_at=time.time(),
    )
    return Device(facts=facts, state=state)


def api_facts(api: Api) -> ApiFacts:
    return ApiFacts(api=api, version="3.0", device_name=f"{api} device", driver="1.2.3")


def announce(redis: Redis, devices: list[Device], leased: list[Assignment]) -> None:
    """Announce what the host's worker says every two seconds."""
    inventory = Inventory(redis)
    for each in devices:
        inventory.announce_device(each)
    running = tuple((a.serial, a.job_id, a.attempt, a.token) for a in leased)
    inventory.announce_host(
        HostAnnouncement(
            host="lab", worker="lab-1", pid=4711, running=running, spooled=2, protocol=1, seen_at=time.time()
        )
    )
    for a in leased:
        progress = Progress(
            serial=a.serial, job_id=a.job_id, attempt=a.attempt, token=a.token, label=a.job.cell.label,
            phase="running", done=1, total=5, since=time.time(), last_ms=30.0,
            learnt=Learnt(stage="train", epoch=11, loss=0.5, error=0.25),
            reading=Reading(at=time.time(), current_raw=-700_000, voltage_v=3.8, status="Discharging"),
        )  # fmt: skip
        inventory.announce_progress(progress, "lab")


def fill(redis: Redis, ledger: Ledger, seed: int) -> Content:
    """A finished experiment, one under way, a quarantined phone, a leased one and records in transit."""
    content = Content([device(serial, index) for index, serial in enumerate([*PHONES, "lab-pocl"])])
    rng = random.Random(seed)
    for name in ("squeeze-nightly", "first"):
        submit(ledger, name, [each.serial for each in content.devices])
    content.jobs = ledger.jobs("squeeze-nightly-1")
    for row in content.jobs:
        finish(ledger, row.job, content, rng)
    submit(ledger, "streams", ["lab-pocl"], network="lenet")
    for row in ledger.jobs("streams-1"):
        content.streams.append(finish(ledger, row.job, Content(content.devices), rng, inferences=25))
    _quarantine(ledger, "nexus-5")
    assert ledger.standing.hold(["mate-10"], "anna", None, "new battery") == []
    kept(ledger, nights(12, lambda night, *_: 1.3 if night >= 6 else 1.0, ("nexus-5",), ("lenet",)))
    ledger.nights.schedule("nightly", "nightly.yaml", "30 2 * * *", b"{}")
    queueing_run(ledger, content.devices[0])
    leases = Leases(redis)
    for row in ledger.jobs("first-1")[: 2 * BLOCKS : BLOCKS]:  # one job of each of two phones
        begun = ledger.begin_attempt(row.job_id, row.job.candidates[0], "lab", LONG_S)
        assert begun is not None and leases.acquire(begun)
        assert leases.claim(begun.serial, begun.token, "lab-1") is not None
        content.leased.append(begun)
    RecordStream(redis, "lab").send(content.records[-1].model_dump_json().encode(), "j:1")
    announce(redis, content.devices, content.leased)
    return content


def queueing_run(
    ledger: Ledger, server: Device, seed: int = 1, began_at: float = 1.7e9, doubts: tuple[str, ...] = ()
) -> str:
    """A run of `burst` on one device: 140 requests a second at two servers that drop some."""
    phones = [{"name": "phone", "count": 2, "power": {"idle_w": 1, "busy_w": 3}}]
    spec = make([request_class(rate=140.0)], phones, name="burst", limits={"queue": 6}, duration="20 s")
    servers = [KeptServer(server=f"phone-{n}", device=server.facts, agent_sha256="") for n in (1, 2)]
    return keep_run(ledger, spec, [LiveRun(replace(run(spec, seed), doubts=doubts), began_at)], servers, [[], []])


def submit(
    ledger: Ledger, name: str, serials: list[str], network: str = "squeezenet_v1_0", run: int = 1, **more: Any
) -> None:
    """An experiment NAME-RUN: two backends, three blocks, on each of these devices. `more`: parts of the experiment."""
    experiment = Experiment(**{"name": name, "workload": Workload(network=network), **more})
    jobs = [
        Job(
            experiment_id=f"{name}-{run}",
            cell=Cell(workload=experiment.workload, backend=api, precision=Precision.FP32),
            block=block, candidates=(serial,), sampling=experiment.sampling, conditions=experiment.conditions,
            measure=experiment.measure,
        )
        for api in (Api.OPENCL, Api.VULKAN) for serial in serials for block in range(BLOCKS)
    ]  # fmt: skip
    assert ledger.submit(f"{name}-{run}", experiment, jobs)


def finish(ledger: Ledger, job: Job, content: Content, rng: random.Random, *, inferences: int = 1) -> Record:
    """Begin and end one attempt, with a record that went well."""
    begun = ledger.begin_attempt(job.job_id, job.candidates[0], "lab", 15.0)
    assert begun is not None
    facts = next(each.facts for each in content.devices if each.serial == begun.serial)
    record = _record(begun, facts, rng, inferences)
    assert ledger.keep(record) is KeepResult.NEW
    content.records.append(record)
    return record


def _record(begun: Assignment, facts: DeviceFacts, rng: random.Random, inferences: int) -> Record:
    job = begun.job
    times = [int(rng.uniform(34e6, 46e6)) for _ in range(6)]
    samples = tuple(
        Sample(
            seq=i, t_ns=i, index=i, phase="timed" if i else "warmup", start_ns=round((75 + 6 * i) * S),
            duration_ns=duration, inferences=inferences,
        )
        for i, duration in enumerate(times)
    )  # fmt: skip
    load_w = rng.uniform(2.0, 4.0)
    power = readings(load_between(0.5, load_w), period_s=0.5) if facts.kind == "phone" else ()
    memory = Memory(
        seq=9, t_ns=9, device_bytes=1 << 20, device_peak_bytes=rng.randrange(10 << 20, 20 << 20), vm_hwm_bytes=90 << 20,
        vm_rss_bytes=80 << 20, pss_bytes=70 << 20,
    )  # fmt: skip
    setup = tuple(
        Setup(seq=i, t_ns=i, step=step, start_ns=i, duration_ns=int(rng.uniform(1e6, 9e7)))
        for i, step in enumerate(("library", "build", "allocate"))
    )
    return Record(
        experiment_id=job.experiment_id, job_id=job.job_id, cell_id=job.cell.cell_id, block=job.block,
        attempt=begun.attempt, token=begun.token, worker="lab-1", device=facts, source=facts.source, outcome=Outcome.OK,
        started_at=time.time() - 20, ended_at=time.time() - 10, samples=samples, memory=memory, power=power,
        phases=phases(PHASES), gauge=EXACT if power else None, setup=setup,
        provenance=Provenance(agent_version="0.1.0", agent_sha256="ab" * 32),
        doubts=(Doubt(code=DoubtCode.FEW_SAMPLES),),
        runs_on=RunsOn(api=job.cell.backend, precision=job.cell.precision, facts=api_facts(job.cell.backend)),
    )  # fmt: skip


def _quarantine(ledger: Ledger, serial: str) -> None:
    """Three losses in a row on one phone, and three faults of another host, as the sweeper counts them."""
    mine = [row for row in ledger.jobs("first-1") if row.job.candidates == (serial,)]
    for row in mine[-3:]:
        begun = ledger.begin_attempt(row.job_id, serial, "lab", 15.0)
        assert begun is not None
        ledger.end_attempt(row.job_id, begun.attempt, Outcome.LOST, "transport_lost")
    assert [each.serial for each in ledger.standing.quarantined()] == [serial]
    for row in mine[-3:]:
        begun = ledger.begin_attempt(row.job_id, serial, "attic", 15.0)
        assert begun is not None
        ledger.end_attempt(row.job_id, begun.attempt, Outcome.LOST, "record_missing")
    assert [each.serial for each in ledger.standing.quarantined_hosts()] == ["attic"]


def state_settings(folder: Path, redis_url: str) -> dict[str, str]:
    """Environment of an exporter over these stores, on a free port."""
    return {"FARM_STATE": str(folder), "FARM_REDIS_URL": redis_url, "FARM_EXPORTER_PORT": "0"}
