"""Queries of the ledger that change nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from sqlalchemy import CompoundSelect, Connection, Select, Subquery, case, func, select

from orchestrator.model.experiment import Experiment
from orchestrator.model.job import AnyJob, Job
from orchestrator.model.lease import Assignment
from orchestrator.model.queue_view import Share, WaitingJob
from orchestrator.model.record import Outcome

from . import lanes
from .blame import HOST, NOBODY, SILENCE, SUSPECT_AFTER
from .lanes import candidates_of
from .rows import OPEN, AnyRow, JobRow, JobState, RunningRow, block_label, readable
from .tables import ATTEMPTS, CHOICE_DEVICES, CHOICES, EXPERIMENTS, JOBS, LANES, TEMPLATES, number_of
from .templates import JOB_PARTS, ORDINARY, JobReader

NAMED_JOBS = JOBS.join(EXPERIMENTS, EXPERIMENTS.c.sequence == JOBS.c.experiment).join(
    TEMPLATES, TEMPLATES.c.id == JOBS.c.template_id
)
"""Jobs with their experiment's name and their template."""

JOB_COLUMNS = (
    *JOB_PARTS,
    JOBS.c.state,
    JOBS.c.outcome,
    JOBS.c.cause,
    JOBS.c.attempts,
    JOBS.c.ended_at,
)


_WAITING = ("id", "experiment", "block", "lane_id", "priority", "sequence", "not_before")

MAX_PAUSED = 200
"""Jobs that pause before their next attempt, of which placement is told so that it can say so."""
MAX_PLACEABLE = 5000
"""Jobs of which placement is told because a device that is free may run them."""
MAX_OTHERS = 2000
"""Jobs of which placement is told so that it can say why they wait."""


def waiting(
    connection: Connection, free: Collection[str], spec: Callable[[str], Experiment | None]
) -> list[WaitingJob]:
    """The jobs that could be placed now, in order: of each lane no more than it has devices.

    Those that one of the `free` devices may run come first, so that however many jobs wait for devices that are away,
    or busy, nobody waits behind them. `spec`: an experiment by its id; None where it cannot be read, and its jobs are
    left out.
    """
    served = select(CHOICE_DEVICES.c.choice_id).where(CHOICE_DEVICES.c.serial.in_(free))
    reachable = select(LANES.c.id).where(LANES.c.choice_id.in_(served))
    placeable = _first(connection, select(_in_turn(reachable, len(free)).c.id), MAX_PLACEABLE) if free else []
    others = _first(connection, select(_in_turn().c.id).union_all(_paused()), MAX_OTHERS)
    rows = sorted({row.id: row for row in (*placeable, *others)}.values(), key=_place_in_queue)
    devices = lanes.devices_of(connection, {row.lane_id for row in rows})
    failed, suspects = _failed_on(connection), _suspects(connection, JobState.WAITING)
    return [
        WaitingJob(
            job_id=row.id,
            experiment_id=row.experiment_id,
            label=block_label(row.label, row.block),
            candidates=devices[row.lane_id],
            conditions=experiment.conditions,
            priority=row.priority,
            order=(row.experiment, row.sequence),
            failed_on=frozenset(failed.get(row.id, ())),
            alone=row.id in suspects,
            not_before=row.not_before,
        )
        for row in rows
        if (experiment := spec(row.experiment_id)) is not None
    ]


def _first(connection: Connection, ids: Select[str] | CompoundSelect[str], limit: int) -> Sequence[AnyRow]:
    """The rows of these jobs, the first in the queue."""
    order = (JOBS.c.priority.desc(), JOBS.c.experiment, JOBS.c.sequence)
    columns = [JOBS.c[name] for name in _WAITING]
    named = select(*columns, EXPERIMENTS.c.id.label("experiment_id"), TEMPLATES.c.label).select_from(NAMED_JOBS)
    return connection.execute(named.where(JOBS.c.id.in_(ids)).order_by(*order).limit(limit)).all()


def _place_in_queue(row: AnyRow) -> tuple[int, int, int]:
    return -row.priority, row.experiment, row.sequence


def _in_turn(reachable: Select[int] | None = None, most: int = MAX_PLACEABLE) -> Subquery:
    """The first waiting jobs of each lane, or of each of these lanes; read in order of an index. No more of a lane than
    `most`, nor than it has devices."""
    place = func.row_number().over(partition_by=JOBS.c.lane_id, order_by=JOBS.c.sequence)
    ready = (JOBS.c.state == JobState.WAITING) & (JOBS.c.not_before <= time.time())
    if reachable is not None:
        ready &= JOBS.c.lane_id.in_(reachable)
    ranked = select(JOBS.c.id, JOBS.c.lane_id, place.label("place")).where(ready).subquery()
    of_lane = select(ranked.c.id).join(LANES, LANES.c.id == ranked.c.lane_id)
    sized = of_lane.join(CHOICES, CHOICES.c.id == LANES.c.choice_id)
    return sized.where(ranked.c.place <= CHOICES.c.candidate_count, ranked.c.place <= most).subquery()


def _paused() -> Select[str]:
    paused = (JOBS.c.state == JobState.WAITING) & (JOBS.c.not_before > time.time())
    return select(select(JOBS.c.id).where(paused).limit(MAX_PAUSED).subquery().c.id)


def _failed_on(connection: Connection) -> dict[str, set[str]]:
    """Job -> devices on which attempts were lost, for jobs that wait."""
    rows = connection.execute(
        select(ATTEMPTS.c.job_id, ATTEMPTS.c.serial)
        .join(JOBS, JOBS.c.id == ATTEMPTS.c.job_id)
        .where(JOBS.c.state == JobState.WAITING, JOBS.c.attempts > 0)
        .where(ATTEMPTS.c.outcome == Outcome.LOST, ATTEMPTS.c.cause.not_in(NOBODY | HOST))
    )
    failed: dict[str, set[str]] = {}
    for job_id, serial in rows:
        failed.setdefault(job_id, set()).add(serial)
    return failed


def _suspects(connection: Connection, *states: JobState) -> set[str]:
    """Jobs in these states that run alone on their host."""
    silent = (ATTEMPTS.c.outcome == Outcome.LOST) & ATTEMPTS.c.cause.in_(SILENCE)
    rows = (
        select(ATTEMPTS.c.job_id)
        .join(JOBS, JOBS.c.id == ATTEMPTS.c.job_id)
        .where(JOBS.c.state.in_(states), JOBS.c.attempts >= SUSPECT_AFTER, silent)
        .group_by(ATTEMPTS.c.job_id)
        .having(func.count() >= SUSPECT_AFTER)
    )
    return set(connection.scalars(rows))


def shares(connection: Connection) -> dict[str, Share]:
    """What each experiment has of the farm."""
    under_way = (
        select(JOBS.c.experiment, func.count().label("running"))
        .join(ATTEMPTS, ATTEMPTS.c.job_id == JOBS.c.id)
        .where(ATTEMPTS.c.ended_at.is_(None))
        .group_by(JOBS.c.experiment)
        .subquery()
    )
    rows = connection.execute(
        select(EXPERIMENTS.c.id, func.coalesce(under_way.c.running, 0), EXPERIMENTS.c.served_at).outerjoin(
            under_way, under_way.c.experiment == EXPERIMENTS.c.sequence
        )
    )
    return {experiment: Share(int(count), float(served_at)) for experiment, count, served_at in rows}


def running(connection: Connection) -> list[RunningRow]:
    """Attempts that began and have not ended."""
    columns = (EXPERIMENTS.c.id.label("experiment_id"), TEMPLATES.c.label, JOBS.c.block, JOBS.c.state)
    rows = connection.execute(
        select(ATTEMPTS, *columns)
        .select_from(NAMED_JOBS.join(ATTEMPTS, JOBS.c.id == ATTEMPTS.c.job_id))
        .where(ATTEMPTS.c.ended_at.is_(None))
        .order_by(ATTEMPTS.c.token)
    ).all()
    suspects = _suspects(connection, JobState.PLACED, JobState.RUNNING, JobState.CANCELLED) if rows else set()
    return [
        RunningRow(
            job_id=row.job_id,
            experiment_id=row.experiment_id,
            label=block_label(row.label, row.block),
            attempt=row.attempt,
            token=row.token,
            serial=row.serial,
            host=row.host,
            ttl_s=row.ttl_s,
            started_at=row.started_at,
            state=JobState(row.state),
            alone=row.job_id in suspects,
        )
        for row in rows
    ]


def assignment(connection: Connection, row: RunningRow) -> Assignment:
    """The assignment of an attempt, as it was handed out. Raises Unreadable."""
    job: Job = JobReader(connection, ORDINARY).read(_parts(connection, row.job_id))
    return Assignment(serial=row.serial, host=row.host, job=job, attempt=row.attempt, token=row.token, ttl_s=row.ttl_s)


def job(connection: Connection, job_id: str) -> AnyJob:
    """One job. Raises Unreadable."""
    return JobReader(connection).read(_parts(connection, job_id))


def _parts(connection: Connection, job_id: str) -> AnyRow:
    return connection.execute(select(*JOB_PARTS).where(JOBS.c.id == job_id)).one()


def counts(connection: Connection, experiment_id: str | None) -> dict[str, dict[str, int]]:
    """Experiment -> jobs by state, or by outcome where done."""
    statement = select(JOBS.c.experiment, JOBS.c.state, JOBS.c.outcome, func.count()).group_by(
        JOBS.c.experiment, JOBS.c.state, JOBS.c.outcome
    )
    if experiment_id is not None:
        statement = statement.where(JOBS.c.experiment == number_of(experiment_id))
    counted = connection.execute(statement).all()
    known = select(EXPERIMENTS.c.sequence, EXPERIMENTS.c.id)
    names = {row.sequence: row.id for row in connection.execute(known)} if counted else {}
    found: dict[str, dict[str, int]] = {}
    for experiment, state, outcome, count in counted:
        by_word = found.setdefault(names[experiment], {})
        word = outcome if state == JobState.DONE else state
        by_word[word] = by_word.get(word, 0) + count
    return found


def device_counts(connection: Connection, experiment_id: str | None) -> dict[str, tuple[int, int]]:
    """Device -> (jobs that are over, all jobs), of the jobs that only this device may run; without held ones."""
    over = case((JOBS.c.state.in_(OPEN), 0), else_=1)
    certain = (CHOICES.c.candidate_count == 1) & (JOBS.c.state != JobState.HELD)
    counted = select(CHOICES.c.candidates, func.sum(over), func.count()).select_from(JOBS)
    of_choice = counted.join(LANES, LANES.c.id == JOBS.c.lane_id).join(CHOICES, CHOICES.c.id == LANES.c.choice_id)
    statement = of_choice.where(certain)
    if experiment_id is not None:
        statement = statement.where(JOBS.c.experiment == number_of(experiment_id))
    rows = connection.execute(statement.group_by(CHOICES.c.candidates))
    return {candidates_of(candidates)[0]: (int(done), int(total)) for candidates, done, total in rows}


def jobs(connection: Connection, experiment_id: str, states: Iterable[str] | None) -> list[JobRow]:
    """Jobs of an experiment in order, of all or only these states."""
    statement = select(*JOB_COLUMNS).where(JOBS.c.experiment == number_of(experiment_id))
    if states is not None:
        statement = statement.where(JOBS.c.state.in_([str(state) for state in states]))
    return job_rows(connection, connection.execute(statement.order_by(JOBS.c.sequence)).all())


def jobs_by_id(connection: Connection, job_ids: Collection[str]) -> dict[str, AnyJob]:
    """Those of these jobs that are there and can be read; the others are logged."""
    rows = connection.execute(select(*JOB_PARTS).where(JOBS.c.id.in_(set(job_ids)))).all()
    reader = JobReader(connection)
    read = {row.id: readable(f"job {row.id}", partial(reader.read, row)) for row in rows}
    return {job_id: job for job_id, job in read.items() if job is not None}


def job_rows(connection: Connection, rows: Iterable[AnyRow]) -> list[JobRow]:
    """Rows of `JOB_COLUMNS`; what cannot be read is logged and skipped."""
    read = partial(_job_row, JobReader(connection))
    return [found for row in rows if (found := readable(f"job {row.id}", partial(read, row))) is not None]


def _job_row(reader: JobReader, row: AnyRow) -> JobRow:
    return JobRow(
        job_id=row.id,
        job=reader.read(row),
        state=JobState(row.state),
        outcome=row.outcome,
        cause=row.cause,
        attempts=row.attempts,
        ended_at=row.ended_at,
    )
