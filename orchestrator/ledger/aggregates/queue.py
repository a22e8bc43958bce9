"""Count jobs, attempts' bars and experiments."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from orchestrator.ledger.database import padded
from orchestrator.ledger.packed import readable_rows
from orchestrator.ledger.rows import OPEN, JobState
from orchestrator.ledger.tables import (
    ATTEMPTS,
    CHOICE_DEVICES,
    DEAD_RECORDS,
    DEVICE_HEALTH,
    EXPERIMENTS,
    HOLDS,
    HOST_HEALTH,
    JOBS,
    LANES,
    RECORDS,
)


def job_counts(connection: Connection) -> dict[tuple[str, str], int]:
    """Return the number of jobs by state and outcome."""
    grouped = select(JOBS.c.state, JOBS.c.outcome, func.count()).group_by(JOBS.c.state, JOBS.c.outcome)
    return {(state, outcome): count for state, outcome, count in connection.execute(grouped)}


def oldest_waiting(connection: Connection) -> float | None:
    """Return when the oldest job that waits was submitted (Unix time)."""
    waiting = select(JOBS.c.experiment).where(JOBS.c.state == JobState.WAITING)
    oldest = select(func.min(EXPERIMENTS.c.submitted_at)).where(EXPERIMENTS.c.sequence.in_(waiting))
    found: float | None = connection.scalar(oldest)
    return found


def device_jobs(connection: Connection) -> dict[tuple[str, JobState], int]:
    """Return the jobs that each device works on (placed, running), and those that it may be given (waiting)."""
    open_ = (ATTEMPTS.c.ended_at.is_(None), JOBS.c.state.in_((JobState.PLACED, JobState.RUNNING)))
    at_work = select(ATTEMPTS.c.serial, JOBS.c.state, func.count()).join(JOBS, JOBS.c.id == ATTEMPTS.c.job_id)
    found = connection.execute(at_work.where(*open_).group_by(ATTEMPTS.c.serial, JOBS.c.state))
    counts = {(serial, JobState(state)): count for serial, state, count in found}
    of_lane = select(LANES.c.choice_id, func.count().label("jobs")).join(JOBS, JOBS.c.lane_id == LANES.c.id)
    chosen = of_lane.where(JOBS.c.state == JobState.WAITING).group_by(LANES.c.choice_id).subquery()
    waiting = select(CHOICE_DEVICES.c.serial, func.sum(chosen.c.jobs))
    joined = waiting.join(chosen, chosen.c.choice_id == CHOICE_DEVICES.c.choice_id)
    for serial, jobs in connection.execute(joined.group_by(CHOICE_DEVICES.c.serial)):
        counts[serial, JobState.WAITING] = int(jobs)
    return counts


def dead_records(connection: Connection) -> int:
    """Return the number of records that were set aside."""
    return connection.scalar(select(func.count()).select_from(DEAD_RECORDS)) or 0


def quarantined_since(connection: Connection, what: str) -> list[tuple[str, float]]:
    """Return each `device` or `host` in quarantine, and since when (Unix time)."""
    name = {"device": DEVICE_HEALTH.c.serial, "host": HOST_HEALTH.c.host}[what]
    since = name.table.c.quarantined_at
    return [(each, at) for each, at in connection.execute(select(name, since).where(since.is_not(None)))]


def held_since(connection: Connection) -> list[tuple[str, float]]:
    """Return each held device, and since when (Unix time)."""
    lasting = HOLDS.c.until.is_(None) | (HOLDS.c.until > time.time())
    return [(serial, at) for serial, at in connection.execute(select(HOLDS.c.serial, HOLDS.c.since).where(lasting))]


class Watched(NamedTuple):
    """An experiment that gets series of its own."""

    id: str
    name: str
    submitted_at: float


def watched(connection: Connection, most: int, word: str, word_since: float, most_with_word: int) -> list[Watched]:
    """Return the newest experiments and the newest under way, so many of each; and of those that have this word in
    their name and were submitted since then so many more. The newest first."""
    columns = (EXPERIMENTS.c.id, EXPERIMENTS.c.spec, EXPERIMENTS.c.submitted_at, EXPERIMENTS.c.sequence)
    newest = select(*columns).order_by(EXPERIMENTS.c.sequence.desc())
    with_word = EXPERIMENTS.c.spec.contains(word) & (EXPERIMENTS.c.submitted_at > word_since)
    open_job = select(JOBS.c.id).where(JOBS.c.experiment == EXPERIMENTS.c.sequence, JOBS.c.state.in_(OPEN))
    every = [*connection.execute(newest.limit(most)),
             *connection.execute(newest.where(open_job.exists()).limit(most))]  # fmt: skip
    further = connection.execute(newest.where(with_word).limit(most_with_word)).all()
    first = {row.id for row in every}
    rows = {row.id: row for row in sorted((*every, *further), key=lambda row: -row.sequence)}
    found = readable_rows("experiment", rows.values(), lambda row: Watched(row.id, name_in(row.spec), row.submitted_at))
    return [each for each in found if each.id in first or word in each.name]


def name_in(spec: str) -> str:
    """Return the name in an experiment's stored specification."""
    return str(json.loads(spec)["name"])


class StateCount(NamedTuple):
    """Jobs of one experiment in one state."""

    experiment_id: str
    state: str
    jobs: int
    ended_at: float | None


def states_of(connection: Connection, experiment_ids: Collection[str]) -> list[StateCount]:
    """Return the jobs of these experiments by state, with the end of the last one."""
    of_experiment = JOBS.join(EXPERIMENTS, EXPERIMENTS.c.sequence == JOBS.c.experiment)
    columns = (EXPERIMENTS.c.id, JOBS.c.state, func.count(), func.max(JOBS.c.ended_at))
    named = select(*columns).select_from(of_experiment).where(EXPERIMENTS.c.id.in_(padded(experiment_ids)))
    return [StateCount(*row) for row in connection.execute(named.group_by(EXPERIMENTS.c.id, JOBS.c.state))]


def latest_good(connection: Connection, experiment_ids: Collection[str]) -> dict[str, float]:
    """Return when the latest block of each experiment that went well was measured (Unix time)."""
    good = select(RECORDS.c.experiment_id, func.max(RECORDS.c.started_at)).where(
        RECORDS.c.experiment_id.in_(padded(experiment_ids)), RECORDS.c.outcome == "ok"
    )
    return {row.experiment_id: row[1] for row in connection.execute(good.group_by(RECORDS.c.experiment_id))}
