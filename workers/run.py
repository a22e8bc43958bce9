"""One assignment from claim to record: the whole story on one screen."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from kernels.errors import CompileError
from orchestrator.config import Settings
from orchestrator.errors import FarmError, LeaseLost
from orchestrator.lab import load_lab
from orchestrator.model.device import DeviceFacts, Precision, Source
from orchestrator.model.enrolment import Enrolment
from orchestrator.model.job import Job
from orchestrator.model.lab import LabDevice
from orchestrator.model.lease import Assignment
from orchestrator.model.record import Outcome, Record

from .draft import Draft, retry_at
from .enrolment import ensure_calibrated, store
from .fleet import Fleet, Member
from .gates import affinity_proof, check_possible
from .judge import judged
from .layer_memory import layer_memory
from .measure import Block, Measurement, Report, measure, raise_for
from .plans import Arrays, Plans, options_of
from .power import PowerMeter, sources_for
from .session import Session, session
from .supply import PlannedCut, Switch
from .verify import verify, wrong

log = logging.getLogger(__name__)
LAYER_PASSES = 1
"""Profiled passes of a block: its repetitions are the other blocks."""
ENROL_WAIT_S = 20.0
"""A worker that has just started may be woken before it knows its devices."""
DISCHARGING_S = {"any": 0.0, "discharging": 15.0, "cut": 30.0}
"""How long the agent waits until the battery says that it discharges; gauges are late by some seconds."""


@dataclass(frozen=True)
class Workbench:
    """What every session of a host shares."""

    settings: Settings
    fleet: Fleet
    plans: Plans
    worker: str
    """Name of this worker process, unique in the farm."""


@dataclass(frozen=True)
class _Means:
    """With what a block is run, found out before any time is spent."""

    cpus: str
    switch: Switch | None
    meter: PowerMeter | None
    reference_c: float | None


def run_job(assignment: Assignment, bench: Workbench, check: Callable[[], None], report: Report) -> Record:
    """Run one block; every failure becomes the record's outcome. Raises LeaseLost alone: then there is no record.

    `check` raises LeaseLost or JobCancelled; it is called before each step on the device.
    """
    serial = assignment.serial
    unknown = DeviceFacts(serial=serial, host=assignment.host, kind="phone", source=Source.PHONE)
    draft = Draft(assignment, bench.worker, unknown)
    try:
        member = bench.fleet.member(serial, wait_s=ENROL_WAIT_S)
        draft.device, draft.agent_sha256 = member.facts, member.agent_sha256
        _run(draft, member, bench, check, report)
    except LeaseLost:
        raise
    except Exception as e:
        if ready_at := retry_at(e):
            bench.fleet.defer(serial, ready_at, str(e.args[0]))
        draft.fail(e)
        log.info("%s: %s", serial, e, exc_info=not isinstance(e, FarmError | CompileError))
    return judged(draft.record(), assignment.job, draft.enrolment)


def _run(draft: Draft, member: Member, bench: Workbench, check: Callable[[], None], report: Report) -> None:
    job = draft.assignment.job
    means = _means(draft, member, bench)
    report("compiling", 0, 0, None)
    draft.stored = bench.plans.plan(job.cell, member.facts)
    draft.layer_memory = layer_memory(draft.stored.plan)
    inputs = bench.plans.inputs(job.cell.workload)
    reference = bench.plans.reference(job.cell.workload)
    report("waiting", 0, 0, None)
    held: Session | None = None
    try:
        with session(
            member,
            job.conditions,
            bench.settings.state,
            check,
            watch=bench.fleet.watched,
            reference_c=means.reference_c,
        ) as held:
            draft.state_before = held.state_before
            report("preparing", 0, 0, None)
            measured = _measured(draft, held, means, bench, check, report, inputs)
            report("restoring", 0, 0, None)
    finally:
        draft.proofs = (*(held.proofs if held else ()), *affinity_proof(job.conditions, means.cpus))
        draft.supply_restored = held is not None and not held.supply.is_cut
    draft.state_after = held.state_after
    if measured.run.killed:
        draft.end(Outcome.KILLED, "killed", "the device ended the agent without a word: most likely out of memory")
        return
    raise_for(measured.run, member.facts.serial)
    draft.checks = verify(measured.outputs, reference, Precision(job.cell.precision))
    if reasons := wrong(draft.checks):
        draft.end(Outcome.INVALID, "wrong_output", *reasons)


def _means(draft: Draft, member: Member, bench: Workbench) -> _Means:
    """Raises Unsupported, SpecError (the lab file) and TransportLost before anything is compiled or pushed."""
    job, facts, settings = draft.assignment.job, member.facts, bench.settings
    wired = load_lab(settings).device(facts.serial)
    draft.enrolment = store.load(settings.state, facts.serial, facts.fingerprint)
    reference_c = reference_of(wired, draft.enrolment)
    cpus, switch = check_possible(member, job.conditions, wired, settings.state, reference_c)
    meter = sources_for(member, settings, wired, job.measure.power_source) if measures_power(job) else None
    return _Means(cpus, switch, meter, reference_c)


def _measured(
    draft: Draft,
    held: Session,
    means: _Means,
    bench: Workbench,
    check: Callable[[], None],
    report: Report,
    inputs: Arrays,
) -> Measurement:
    """Inside the session: calibrate where that is due, cut the supply, run the block."""
    assert draft.stored is not None
    member = held.member
    if measures_power(draft.assignment.job):
        draft.enrolment = ensure_calibrated(member, bench.settings, check)
    gauge = draft.enrolment.gauge if draft.enrolment else None
    block = block_of(draft.assignment, means.cpus, gauge.discharging_sign if gauge else 0)
    cut = None
    if means.switch:
        draft.supply_way = means.switch.way
        cut = PlannedCut(means.switch, held.supply, member.connection, block.expected_s)
    measured = measure(member, draft.stored, inputs, block, check, report, meter=means.meter, cut=cut)
    draft.run, draft.series = measured.run, measured.series
    return measured


def reference_of(wired: LabDevice, enrolment: Enrolment | None) -> float | None:
    """Temperature of the battery at rest: as a person says, else as it was found."""
    if wired.reference_temp is not None:
        return wired.reference_temp
    return enrolment.reference_temp_c if enrolment else None


def measures_power(job: Job) -> bool:
    return "power" in job.measure.quantities


def block_of(assignment: Assignment, cpus: str = "", discharging_sign: int = 0) -> Block:
    """How the agent is to run this job."""
    job: Job = assignment.job
    sampling, await_s = job.sampling, DISCHARGING_S[job.conditions.supply]
    return Block(
        name=f"{job.job_id}/{assignment.attempt}",
        warmup=sampling.warmup,
        samples=sampling.samples,
        deadline_s=sampling.deadline + await_s,
        layer_passes=LAYER_PASSES if "layers" in job.measure.quantities else 0,
        threads=options_of(job.cell).threads,
        power_period_ms=max(1, round(job.measure.power_period * 1000)) if measures_power(job) else 0,
        idle_s=sampling.idle,
        load_s=sampling.load,
        warmup_stable=sampling.warmup_stable or 0.0,
        cpus=cpus,
        await_discharging_s=await_s,
        discharging_sign=discharging_sign,
        is_cold=sampling.mode == "cold",
    )
