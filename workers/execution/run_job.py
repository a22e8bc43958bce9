"""Run one assignment, from claim to record, and those in line behind it."""

from __future__ import annotations

import logging
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from kernels.errors import CompileError, interruptible
from orchestrator.config import Settings
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.errors import FarmError, LeaseLost
from orchestrator.model.device import Precision
from orchestrator.model.enrolment import Enrolment
from orchestrator.model.lease import LINE_S, Assignment
from orchestrator.model.record import Outcome, Record, Replan
from orchestrator.model.wiring import WiredDevice
from orchestrator.spec.wiring_file import load_wiring
from workers.devices.driver import with_driver
from workers.devices.fleet import Fleet, Member
from workers.devices.install import file_sha256, install_build
from workers.enrolment import store
from workers.measure import Block, Carried, Measurement, Prepared, Report, measure, raise_for
from workers.measure.kill_log import is_crash
from workers.measure.replan import run_within_limits
from workers.plans.compile_limit import compiling_within
from workers.plans.plan_store import Arrays, Plans
from workers.power import PowerMeter, sources_for
from workers.power.clock_mapping import anchor
from workers.session.conditions.affinity import listed
from workers.session.owner import Orderly
from workers.session.preconditions import check_possible
from workers.session.session import Seen, Session, alone, session
from workers.session.supply import PlannedCut, Switch

from .agent_block import block_of, measures_power
from .calibration import calibrated
from .line import Line
from .predictions import predictions
from .record_builder import RecordBuilder, retry_at
from .training import trained_model
from .verify_outputs import verify, wrong

log = logging.getLogger(__name__)
ENROL_WAIT_S = 20.0
"""A worker that has just started may be given a task before it knows its devices."""


@dataclass(frozen=True)
class Workbench:
    """The means that every session of a host shares."""

    settings: Settings
    fleet: Fleet
    plans: Plans
    worker: str
    """Name of this worker process, unique in the farm."""
    farm: Callable[[], str] = lambda: ""
    """Asks whose tokens the leases have; empty: nobody knows."""
    give: Callable[[str], None] = lambda _: None
    """Gives the farm a file that was made here, by its SHA-256."""
    orderly: Orderly = field(default_factory=Orderly)


@dataclass(frozen=True)
class _Means:
    """The means by which a block is run, found out before any time is spent."""

    cpus: str
    switch: Switch | None
    meter: PowerMeter | None
    reference_c: float | None


@dataclass(frozen=True)
class _Given:
    """The inputs of one block, and the outputs that it should come to."""

    inputs: Arrays
    reference: Arrays


def run_job(assignment: Assignment, bench: Workbench, check: Callable[[], None], report: Report) -> Record:
    """Run one block, and nothing that is in line behind it; every failure becomes the record's outcome. Raises
    LeaseLost alone: then there is no record.

    `check` raises LeaseLost or JobCancelled; it is called before each step on the device.
    """
    kept: list[Record] = []
    run_line(
        assignment.model_copy(update={"line": ()}),
        bench,
        check,
        report,
        lambda record, _: kept.append(record),
        lambda _: False,
    )
    return kept[0]


def run_line(
    assignment: Assignment,
    bench: Workbench,
    check: Callable[[], None],
    report: Report,
    keep: Callable[[Record, bool], None],
    go_on: Callable[[Assignment], bool],
) -> None:
    """Run a block and those in line behind it, in one session; each leaves a record, also those that are handed back:
    a session goes on only after a block that measured. Raises LeaseLost alone: then the ledger decides.

    `keep` gets each record as soon as it is whole, and whether the session is over; `go_on` says whether the next
    attempt may begin, and makes it the one that is under way.
    """
    line = Line(assignment, bench.worker, keep)
    try:
        with interruptible(check):
            _run(line, bench, check, report, go_on)
    except LeaseLost:
        raise
    except Exception as e:
        if ready_at := retry_at(e):
            bench.fleet.defer(assignment.serial, ready_at, str(e.args[0]))
        line.now.fail(e)
        log.info("%s: %s", assignment.serial, e, exc_info=not isinstance(e, FarmError | CompileError))
    line.end()


def _run(
    line: Line, bench: Workbench, check: Callable[[], None], report: Report, go_on: Callable[[Assignment], bool]
) -> None:
    job, token = line.now.assignment.job, line.now.assignment.token
    member = bench.fleet.member(line.now.assignment.serial, wait_s=ENROL_WAIT_S)
    line.know(member.facts, member.agent_sha256)
    member = with_driver(member, job.cell)
    line.know(member.facts, member.agent_sha256)
    means = _means(line.now, member, bench)
    line.share(means.cpus)
    ready = _ready(line, member, means, bench, check, report)
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
            farm=bench.farm(),
            token=token,
            orderly=bench.orderly,
        ) as held:
            began, given, carried = time.monotonic(), ready.popleft(), Carried(held.ahead)
            while True:
                line.now.state_before = held.state_before
                report("preparing", 0, 0, None)
                carried.coming = partial(_coming, line.behind[0], held, means, ready[0]) if ready else held.closing
                measured = _measured(line.now, held, means, bench, report, given.inputs, carried)
                is_over = bool(measured.run.killed or measured.run.error) or time.monotonic() > began + LINE_S
                seen = _look(line.behind[0], held, means, ready[0], carried) if ready and not is_over else None
                if seen is None or not go_on(line.next):
                    break
                line.now.state_after, line.now.proofs = seen
                _judge(line.now, measured, given, bench)
                line.go_on()
                held.go_on(seen)
                given = ready.popleft()
            held.has_no_agents = not (measured.run.killed or measured.run.error)
            report("restoring", 0, 0, None)
    finally:
        line.now.proofs = tuple(held.proofs) if held else ()
        line.now.supply_restored = held is not None and not held.supply.is_cut
    line.now.state_after = held.state_after
    if measured.run.killed:
        log_says = measured.run.killed_by
        told = f"; its log: {log_says}" if log_says else " without a word: most likely out of memory"
        cause = "crashed" if is_crash(log_says) else "killed"
        line.now.end(Outcome.KILLED, cause, f"the device ended the agent{told}")
        return
    raise_for(measured.run, member.facts.serial)
    _judge(line.now, measured, given, bench)


def _look(builder: RecordBuilder, held: Session, means: _Means, given: _Given, carried: Carried) -> Seen | None:
    """See the device between two blocks, and prepare it for the next one in the same trip: in that of the block before,
    where it was brief."""
    following = _following(builder, held, means, given, carried)
    return held.look(following.commands(carried.verified), [following.undoing])


def _coming(
    builder: RecordBuilder, held: Session, means: _Means, given: _Given, carried: Carried
) -> Sequence[Sequence[str]]:
    """Return what `_look` will ask behind the block that begins."""
    following = _following(builder, held, means, given, carried)
    return held.coming(following.commands(carried.verified), [following.undoing])


def _following(builder: RecordBuilder, held: Session, means: _Means, given: _Given, carried: Carried) -> Prepared:
    assert builder.stored is not None
    return carried.expect(held.member, builder.stored, given.inputs, _block(builder, means))


def _judge(builder: RecordBuilder, measured: Measurement, given: _Given, bench: Workbench) -> None:
    """Judge what a block that went well came to."""
    job = builder.assignment.job
    if job.cell.workload.training is not None:
        _keep_trained(builder, measured.checkpoint, bench)
        return
    precision = Precision(job.cell.precision)
    rounded = partial(bench.plans.rounded, precision, job.cell.workload, job.cell.batch, job.examples)
    builder.checks = verify(measured.outputs, given.reference, precision, rounded)
    if job.examples is not None:
        builder.predictions = predictions(measured.each, job.examples)
    if reasons := wrong(builder.checks):
        builder.end(Outcome.INVALID, "wrong_output", *reasons)


def _ready(
    line: Line, member: Member, means: _Means, bench: Workbench, check: Callable[[], None], report: Report
) -> deque[_Given]:
    """Return what the blocks are given, before any has the device; where one of those in line cannot be made ready, it
    and those behind it are handed back."""
    ready = deque([_given(line.now, member, means, bench, check, report)])
    for before, builder in pairwise([line.now, *line.behind]):
        try:
            ready.append(
                ready[-1] if _is_like(builder, before) else _given(builder, member, means, bench, check, report)
            )
        except LeaseLost:
            raise
        except Exception as e:
            log.info("%s: %s is handed back: %s", member.facts.serial, builder.assignment.job_id, e)
            break
    return ready


def _is_like(builder: RecordBuilder, before: RecordBuilder) -> bool:
    """Return whether a block computes what the one before it does; then it was made ready with it."""
    job, other = builder.assignment.job, before.assignment.job
    if job.cell != other.cell or job.examples != other.examples:
        return False
    builder.stored, builder.layer_memory = before.stored, before.layer_memory
    return True


def _given(
    builder: RecordBuilder, member: Member, means: _Means, bench: Workbench, check: Callable[[], None], report: Report
) -> _Given:
    job = builder.assignment.job
    _compile(builder, member, means, bench, check, report)
    with compiling_within(job.sampling.deadline, member.facts.serial, check):
        inputs = bench.plans.inputs(job.cell.workload, job.cell.batch, job.examples)
        trains = job.cell.workload.training is not None
        reference = {} if trains else bench.plans.reference(job.cell.workload, job.cell.batch, job.examples)
    return _Given(inputs, reference)


def _keep_trained(builder: RecordBuilder, checkpoint: bytes, bench: Workbench) -> None:
    """Raises DeviceSick."""
    assert builder.stored is not None
    with tempfile.NamedTemporaryFile(prefix="pocketfarm-") as file:
        file.write(checkpoint)
        file.flush()
        kept = Artifacts(bench.settings.state)
        builder.trained, builder.reconstructions = trained_model(
            builder.assignment.job.cell, bench.plans, builder.stored, Path(file.name), kept
        )
    for sha256 in (builder.trained.onnx_sha256, builder.trained.checkpoint_sha256):
        bench.give(sha256)


def _compile(
    builder: RecordBuilder, member: Member, means: _Means, bench: Workbench, check: Callable[[], None], report: Report
) -> None:
    """The plan for this device, within what is known of its driver. Raises Unsupported and the compiler's errors."""
    job = builder.assignment.job
    report("compiling", 0, 0, None)
    with compiling_within(job.sampling.deadline, member.facts.serial, check):
        builder.stored = bench.plans.plan(job.cell, member.facts, cpus=len(listed(means.cpus)) if means.cpus else 0)
        builder.layer_memory = builder.stored.layer_memory


def _means(builder: RecordBuilder, member: Member, bench: Workbench) -> _Means:
    """Raises Unsupported, SpecError (wiring file), DeviceBusy, TransportLost before anything is compiled or pushed."""
    job, facts, settings = builder.assignment.job, member.facts, bench.settings
    wired = load_wiring(settings).device(facts.serial)
    builder.enrolment = store.load(settings.state, facts.serial, facts.fingerprint)
    reference_c = reference_of(wired, builder.enrolment)
    with alone(member, settings.state):
        cpus, switch = check_possible(member, job.conditions, wired, settings.state, reference_c)
        meter = sources_for(member, settings, wired, job.measure.power_source) if measures_power(job) else None
    return _Means(cpus, switch, meter, reference_c)


def _measured(
    builder: RecordBuilder,
    held: Session,
    means: _Means,
    bench: Workbench,
    report: Report,
    inputs: Arrays,
    carried: Carried,
) -> Measurement:
    """Inside the session: calibrate where that is due, cut the supply, run the block."""
    check = held.check
    member = _with_its_agent(builder, held.member, bench)
    if measures_power(builder.assignment.job):
        builder.enrolment = calibrated(builder.enrolment, held, means.switch, bench.settings, check)
        builder.clock = anchor(member.connection, member.agent)
    block = _block(builder, means)

    def run() -> Measurement:
        assert builder.stored is not None
        cut = None
        if means.switch:
            builder.supply_way = means.switch.way
            cut = PlannedCut(means.switch, held.supply, member.connection, block.expected_s)
        measured = measure(
            member, builder.stored, inputs, block, check, report,
            meter=means.meter, cut=cut, tidy=held.tidy, carried=carried,
        )  # fmt: skip
        builder.run, builder.series, builder.earlier = measured.run, measured.series, measured.earlier
        return measured

    def replan(learnt: Replan) -> None:
        builder.replans += (learnt,)
        _compile(builder, member, means, bench, check, report)

    api = builder.assignment.job.cell.backend
    return run_within_limits(bench.plans.kernel_limits, member.facts, api, run, replan)


def _block(builder: RecordBuilder, means: _Means) -> Block:
    gauge = builder.enrolment.gauge if builder.enrolment else None
    return block_of(builder.assignment, means.cpus, gauge.discharging_sign if gauge else 0)


def _with_its_agent(builder: RecordBuilder, member: Member, bench: Workbench) -> Member:
    """The device with the build of the agent that the cell names, if it names one."""
    build = bench.plans.agent(builder.assignment.job.cell, member.facts)
    if build is None:
        return member
    builder.agent_sha256 = file_sha256(build)
    return replace(member, agent=install_build(member.connection, build), agent_sha256=builder.agent_sha256)


def reference_of(wired: WiredDevice, enrolment: Enrolment | None) -> float | None:
    """Temperature of the battery at rest: as a person says, else as it was found."""
    if wired.reference_temp is not None:
        return wired.reference_temp
    return enrolment.reference_temp_c if enrolment else None
