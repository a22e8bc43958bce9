"""Queries of the ledger that change nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from sqlalchemy import CompoundSelect, Connection, Select, Subquery, case, func, select

from orchestrator.model.experiment import Experiment
from orchestrator.model.job import ANY_JOB, AnyJob, Job
from orchestrator.model.lease import Assignment
from orchestrator.model.queue_view import Share, WaitingJob
from orchestrator.model.record import Outcome

from .blame import HOST, NOBODY, SILENCE, SUSPECT_AFTER
from .lanes import candidates_of
from .rows import OPEN, AnyRow, JobRow, JobState, RunningRow, read_row, readable, unpack
from .tables import ATTEMPTS, EXPERIMENTS, JOBS, LANE_DEVICES, LANES

JOB_BODY_COLUMNS = (
    JOBS.c.id,
    JOBS.c.body,
    JOBS.c.state,
    JOBS.c.outcome,
    JOBS.c.cause,
    JOBS.c.attempts,
    JOBS.c.ended_at,
)


_WAITING = ("id", "experiment_id", "label", "lane_id", "priority", "experiment_sequence", "sequence", "not_before")

MAX_PAUSED = 200
"""Jobs that pause before their next attempt, of which placement is told so that it can say so."""
MAX_PLACEABLE = 5000
"""Jobs of which placement is told because a device that is free may run them."""
MAX_OTHERS = 2000
"""Jobs of which placement is told so that it can say why they wait."""
_LANES_AT_ONCE = 500


def waiting(
    connection: Connection, free: Collection[str], spec: Callable[[str], Experiment | None]
) -> list[WaitingJob]:
    """The jobs that could be placed now, in order: of each lane no more than it has devices.

    Those that one of the `free` devices may run come first, so that however many jobs wait for devices that are away,
    or busy, nobody waits behind them. `spec`: an experiment by its id; None where it cannot be read, and its jobs are
    left out.
    """
    reachable = select(LANE_DEVICES.c.lane_id).where(LANE_DEVICES.c.serial.in_(free))
    placeable = _first(connection, select(_in_turn(reachable, len(free)).c.id), MAX_PLACEABLE) if free else []
    others = _first(connection, select(_in_turn().c.id).union_all(_paused()), MAX_OTHERS)
    rows = sorted({row.id: row for row in (*placeable, *others)}.values(), key=_place_in_queue)
    devices = _devices_of(connection, {row.lane_id for row in rows})
    failed, suspects = _failed_on(connection), _suspects(connection, JobState.WAITING)
    return [
        WaitingJob(
            job_id=row.id,
            experiment_id=row.experiment_id,
            label=row.label,
            candidates=devices[row.lane_id],
            conditions=experiment.conditions,
            priority=row.priority,
            order=(row.experiment_sequence, row.sequence),
            failed_on=frozenset(failed.get(row.id, ())),
            alone=row.id in suspects,
            not_before=row.not_before,
        )
        for row in rows
        if (experiment := spec(row.experiment_id)) is not None
    ]


def _first(connection: Connection, ids: Select[str] | CompoundSelect[str], limit: int) -> Sequence[AnyRow]:
    """The rows of these jobs, the first in the queue."""
    order = (JOBS.c.priority.desc(), JOBS.c.experiment_sequence, JOBS.c.sequence)
    columns = [JOBS.c[name] for name in _WAITING]
    return connection.execute(select(*columns).where(JOBS.c.id.in_(ids)).order_by(*order).limit(limit)).all()


def _place_in_queue(row: AnyRow) -> tuple[int, int, int]:
    return -row.priority, row.experiment_sequence, row.sequence


def _in_turn(lanes: Select[int] | None = None, most: int = MAX_PLACEABLE) -> Subquery:
    """The first waiting jobs of each lane, or of each of these lanes; read in order of an index. No more of a lane than
    `most`, nor than it has devices."""
    place = func.row_number().over(partition_by=JOBS.c.lane_id, order_by=JOBS.c.sequence)
    ready = (JOBS.c.state == JobState.WAITING) & (JOBS.c.not_before <= time.time())
    if lanes is not None:
        ready &= JOBS.c.lane_id.in_(lanes)
    ranked = select(JOBS.c.id, JOBS.c.lane_id, place.label("place")).where(ready).subquery()
    of_lane = select(ranked.c.id).join(LANES, LANES.c.id == ranked.c.lane_id)
    return of_lane.where(ranked.c.place <= LANES.c.candidate_count, ranked.c.place <= most).subquery()


def _devices_of(connection: Connection, wanted: Collection[int]) -> dict[int, tuple[str, ...]]:
    """Lane -> its devices."""
    known: dict[int, tuple[str, ...]] = {}
    numbers = sorted(wanted)
    for start in range(0, len(numbers), _LANES_AT_ONCE):
        part = LANES.c.id.in_(numbers[start : start + _LANES_AT_ONCE])
        rows = connection.execute(select(LANES.c.id, LANES.c.candidates).where(part))
        known |= {number: candidates_of(text) for number, text in rows}
    return known


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
        select(JOBS.c.experiment_id, func.count().label("running"))
        .join(ATTEMPTS, ATTEMPTS.c.job_id == JOBS.c.id)
        .where(ATTEMPTS.c.ended_at.is_(None))
        .group_by(JOBS.c.experiment_id)
        .subquery()
    )
    rows = connection.execute(
        select(EXPERIMENTS.c.id, func.coalesce(under_way.c.running, 0), EXPERIMENTS.c.served_at).outerjoin(
            under_way, under_way.c.experiment_id == EXPERIMENTS.c.id
        )
    )
    return {experiment: Share(int(count), float(served_at)) for experiment, count, served_at in rows}


def running(connection: Connection) -> list[RunningRow]:
    """Attempts that began and have not ended."""
    columns = (JOBS.c.experiment_id, JOBS.c.label, JOBS.c.state)
    rows = connection.execute(
        select(ATTEMPTS, *columns)
        .join(JOBS, JOBS.c.id == ATTEMPTS.c.job_id)
        .where(ATTEMPTS.c.ended_at.is_(None))
        .order_by(ATTEMPTS.c.token)
    ).all()
    suspects = _suspects(connection, JobState.PLACED, JobState.RUNNING, JobState.CANCELLED) if rows else set()
    return [
        RunningRow(
            job_id=row.job_id,
            experiment_id=row.experiment_id,
            label=row.label,
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
    body = connection.execute(select(JOBS.c.body).where(JOBS.c.id == row.job_id)).scalar_one()
    job = read_row(f"job {row.job_id}", lambda: Job.model_validate_json(unpack(body)))
    return Assignment(serial=row.serial, host=row.host, job=job, attempt=row.attempt, token=row.token, ttl_s=row.ttl_s)


def counts(connection: Connection, experiment_id: str | None) -> dict[str, dict[str, int]]:
    """Experiment -> jobs by state, or by outcome where done."""
    statement = select(JOBS.c.experiment_id, JOBS.c.state, JOBS.c.outcome, func.count()).group_by(
        JOBS.c.experiment_id, JOBS.c.state, JOBS.c.outcome
    )
    if experiment_id is not None:
        statement = statement.where(JOBS.c.experiment_id == experiment_id)
    found: dict[str, dict[str, int]] = {}
    for experiment, state, outcome, count in connection.execute(statement):
        by_word = found.setdefault(experiment, {})
        word = outcome if state == JobState.DONE else state
        by_word[word] = by_word.get(word, 0) + count
    return found


def device_counts(connection: Connection, experiment_id: str | None) -> dict[str, tuple[int, int]]:
    """Device -> (jobs that are over, all jobs), of the jobs that only this device may run; without held ones."""
    over = case((JOBS.c.state.in_(OPEN), 0), else_=1)
    certain = (LANES.c.candidate_count == 1) & (JOBS.c.state != JobState.HELD)
    counted = select(LANES.c.candidates, func.sum(over), func.count()).join(LANES, LANES.c.id == JOBS.c.lane_id)
    statement = counted.where(certain)
    if experiment_id is not None:
        statement = statement.where(JOBS.c.experiment_id == experiment_id)
    rows = connection.execute(statement.group_by(LANES.c.candidates))
    return {candidates_of(candidates)[0]: (int(done), int(total)) for candidates, done, total in rows}


def jobs(connection: Connection, experiment_id: str, states: Iterable[str] | None) -> list[JobRow]:
    """Jobs of an experiment in order, of all or only these states."""
    statement = select(*JOB_BODY_COLUMNS).where(JOBS.c.experiment_id == experiment_id)
    if states is not None:
        statement = statement.where(JOBS.c.state.in_([str(state) for state in states]))
    return job_rows(connection.execute(statement.order_by(JOBS.c.sequence)))


def jobs_by_id(connection: Connection, job_ids: Collection[str]) -> dict[str, AnyJob]:
    """Those of these jobs that are there and can be read; the others are logged."""
    rows = connection.execute(select(JOBS.c.id, JOBS.c.body).where(JOBS.c.id.in_(set(job_ids))))
    read = {row.id: readable(f"job {row.id}", partial(_any_job, row.body)) for row in rows}
    return {job_id: job for job_id, job in read.items() if job is not None}


def job_rows(rows: Iterable[AnyRow]) -> list[JobRow]:
    """What cannot be read is logged and skipped."""
    return [found for row in rows if (found := readable(f"job {row.id}", partial(_job_row, row))) is not None]


def _any_job(body: bytes) -> AnyJob:
    return ANY_JOB.validate_json(unpack(body))


def _job_row(row: AnyRow) -> JobRow:
    return JobRow(
        job_id=row.id,
        job=_any_job(row.body),
        state=JobState(row.state),
        outcome=row.outcome,
        cause=row.cause,
        attempts=row.attempts,
        ended_at=row.ended_at,
    )
