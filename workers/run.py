"""One assignment from claim to record: the whole story on one screen."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from kernels.errors import CompileError
from orchestrator.config import Settings
from orchestrator.errors import FarmError, LeaseLost
from orchestrator.model.device import DeviceFacts, Precision, Source
from orchestrator.model.job import Job
from orchestrator.model.lease import Assignment
from orchestrator.model.record import Outcome, Record

from .draft import Draft, retry_at
from .fleet import Fleet, Member
from .measure import Block, Report, measure, raise_for
from .plans import Plans, options_of
from .session import session
from .verify import verify, wrong

log = logging.getLogger(__name__)
LAYER_PASSES = 1
"""Profiled passes of a block: its repetitions are the other blocks."""
ENROL_WAIT_S = 20.0
"""A worker that has just started may be woken before it knows its devices."""


@dataclass(frozen=True)
class Workbench:
    """What every session of a host shares."""

    settings: Settings
    fleet: Fleet
    plans: Plans
    worker: str
    """Name of this worker process, unique in the farm."""


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
    return draft.record()


def _run(draft: Draft, member: Member, bench: Workbench, check: Callable[[], None], report: Report) -> None:
    job = draft.assignment.job
    cell, workload = job.cell, job.cell.workload
    report("compiling", 0, 0, None)
    draft.stored = bench.plans.plan(cell, member.facts)
    inputs = bench.plans.inputs(workload)
    reference = bench.plans.reference(workload)
    report("waiting", 0, 0, None)
    with session(member, job.conditions, bench.settings.state, check) as held:
        draft.state_before = held.state_before
        report("preparing", 0, 0, None)
        measured = measure(member, draft.stored, inputs, block_of(draft.assignment), check, report)
        draft.run = measured.run
        report("restoring", 0, 0, None)
    draft.state_after = held.state_after
    if measured.run.killed:
        draft.end(Outcome.KILLED, "killed", "the device ended the agent without a word: most likely out of memory")
        return
    raise_for(measured.run, member.facts.serial)
    draft.checks = verify(measured.outputs, reference, Precision(cell.precision))
    if reasons := wrong(draft.checks):
        draft.end(Outcome.INVALID, "wrong_output", *reasons)


def block_of(assignment: Assignment) -> Block:
    """How the agent is to run this job."""
    job: Job = assignment.job
    quantities = job.measure.quantities
    return Block(
        name=f"{job.job_id}/{assignment.attempt}",
        warmup=job.sampling.warmup,
        samples=job.sampling.samples,
        deadline_s=job.sampling.deadline,
        layer_passes=LAYER_PASSES if "layers" in quantities else 0,
        threads=options_of(job.cell).threads,
        power_period_ms=max(1, round(job.measure.power_period * 1000)) if "power" in quantities else 0,
    )
