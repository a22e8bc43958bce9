"""Run one assignment, from claim to record, and those in line behind it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from kernels.errors import CompileError, interruptible
from orchestrator.model.enrolment import Enrolment
from orchestrator.model.errors import FarmError, LeaseLost
from orchestrator.model.live.lease import LINE_S, Assignment
from orchestrator.model.record import Record
from orchestrator.model.wiring import WiredDevice
from orchestrator.spec.wiring_file import load_wiring
from orchestrator.system.config import Settings
from workers.devices.driver import with_driver
from workers.devices.fleet import Fleet, Member
from workers.engines import Commands, Engines, Measured, Program, Report, Run, Trips, Work
from workers.enrolment import store
from workers.power import PowerMeter, sources_for
from workers.power.clock_mapping import anchor
from workers.session.owner import Orderly
from workers.session.preconditions import check_possible
from workers.session.session import Seen, Session, alone, session
from workers.session.supply import PlannedCut, Switch

from .calibration import calibrated
from .line import Line
from .record_builder import RecordBuilder, retry_at

log = logging.getLogger(__name__)
ENROL_WAIT_S = 20.0
"""A worker that has just started may be given a task before it knows its devices."""


@dataclass(frozen=True)
class Workbench:
    """The means that every session of a host shares."""

    settings: Settings
    fleet: Fleet
    engines: Engines
    worker: str
    """Name of this worker process, unique in the farm."""
    farm: Callable[[], str] = lambda: ""
    """Asks whose tokens the leases have; empty: nobody knows."""
    orderly: Orderly = field(default_factory=Orderly)


@dataclass(frozen=True)
class _Means:
    """The means by which a block is run, found out before any time is spent."""

    cpus: str
    switch: Switch | None
    meter: PowerMeter | None
    reference_c: float | None


class _Next(NamedTuple):
    """A block that is to run."""

    program: Program
    run: Run


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
    made_ready = _prepare(line, member, means, bench.engines, check, report)
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
            began, trips, left = time.monotonic(), Trips(held.ahead), made_ready
            while True:
                line.now.state_before, left = held.state_before, left - 1
                report("preparing", 0, 0, None)
                following = partial(_run_of, line.behind[0], held, means, report) if left else None
                trips.coming = partial(_coming, held, following) if following else held.closing
                measured = _measured(line.now, held, means, bench, report, trips)
                is_over = not measured.went_well or time.monotonic() > began + LINE_S
                seen = _look(held, following, trips) if following and not is_over else None
                if seen is None or not go_on(line.next):
                    break
                line.now.state_after, line.now.proofs = seen
                line.now.judge()
                line.go_on()
                held.go_on(seen)
            held.has_no_agents = measured.went_well
            report("restoring", 0, 0, None)
    finally:
        line.now.proofs = tuple(held.proofs) if held else ()
        line.now.supply_restored = held is not None and not held.supply.is_cut
    line.now.state_after = held.state_after
    line.now.judge()


def _prepare(
    line: Line, member: Member, means: _Means, engines: Engines, check: Callable[[], None], report: Report
) -> int:
    """Make the programs ready before any block has the device, and return how many: where one in line cannot be made
    ready, it and those behind it are handed back."""

    def prepared(builder: RecordBuilder) -> Program:
        engine = engines.engine(builder.assignment.job.cell.engine, member.facts.serial)
        return engine.prepare(Work(builder.assignment, member, check, report, means.cpus))

    line.now.program = prepared(line.now)
    for number, (before, builder) in enumerate(pairwise([line.now, *line.behind]), 1):
        assert before.program is not None
        try:
            builder.program = before.program.again() if _is_like(builder, before) else prepared(builder)
        except LeaseLost:
            raise
        except Exception as e:
            log.info("%s: %s is handed back: %s", member.facts.serial, builder.assignment.job_id, e)
            return number
    return 1 + len(line.behind)


def _is_like(builder: RecordBuilder, before: RecordBuilder) -> bool:
    """Return whether a block computes what the one before it does; then it was made ready with it."""
    job, other = builder.assignment.job, before.assignment.job
    return job.cell == other.cell and job.examples == other.examples


def _run_of(builder: RecordBuilder, held: Session, means: _Means, report: Report, trips: Trips) -> _Next:
    """Return a block's program, and the run that it gets."""
    assert builder.program is not None
    gauge = builder.enrolment.gauge if builder.enrolment else None

    def cut(expected_s: float) -> PlannedCut | None:
        if means.switch is None:
            return None
        builder.supply_way = means.switch.way
        return PlannedCut(means.switch, held.supply, held.member.connection, expected_s)

    run = Run(
        builder.assignment, held.member, held.check, report, trips, held.tidy, means.cpus,
        gauge.discharging_sign if gauge else 0, means.meter, cut,
    )  # fmt: skip
    return _Next(builder.program, run)


def _coming(held: Session, following: Callable[[Trips], _Next], trips: Trips) -> Commands:
    """Return what `_look` will ask behind the block that begins."""
    program, run = following(trips)
    return held.coming(*program.coming(run))


def _look(held: Session, following: Callable[[Trips], _Next], trips: Trips) -> Seen | None:
    """See the device between two blocks, and prepare it for the next one in the same trip: in that of the block before,
    where it was brief."""
    program, run = following(trips)
    return held.look(*program.coming(run))


def _means(builder: RecordBuilder, member: Member, bench: Workbench) -> _Means:
    """Raises Unsupported, SpecError (wiring file), DeviceBusy, TransportLost before anything is compiled or pushed."""
    job, facts, settings = builder.assignment.job, member.facts, bench.settings
    wired = load_wiring(settings.wiring_file).device(facts.serial)
    builder.enrolment = store.load(settings.state, facts.serial, facts.fingerprint)
    reference_c = reference_of(wired, builder.enrolment)
    with alone(member, settings.state):
        cpus, switch = check_possible(member, job.conditions, wired, settings.state, reference_c)
        meter = sources_for(member, settings, wired, job.measure.power_source) if job.measures_power else None
    return _Means(cpus, switch, meter, reference_c)


def _measured(
    builder: RecordBuilder, held: Session, means: _Means, bench: Workbench, report: Report, trips: Trips
) -> Measured:
    """Inside the session: calibrate where that is due, then run the block."""
    if builder.assignment.job.measures_power:
        builder.enrolment = calibrated(builder.enrolment, held, means.switch, bench.settings, held.check)
        builder.clock = anchor(held.member.connection, held.member.agent)
    program, run = _run_of(builder, held, means, report, trips)
    builder.measured = program.run(run)
    return builder.measured


def reference_of(wired: WiredDevice, enrolment: Enrolment | None) -> float | None:
    """Temperature of the battery at rest: as a person says, else as it was found."""
    if wired.reference_temp is not None:
        return wired.reference_temp
    return enrolment.reference_temp_c if enrolment else None
