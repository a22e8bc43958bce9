"""Attempts: begun with a growing token, ended by a record or by the sweeper, counted against job, device or host."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, bindparam, func, insert, select, update

from orchestrator.errors import Forged, Unreadable, Unstorable
from orchestrator.model.job import Job
from orchestrator.model.lease import Assignment
from orchestrator.model.record import Outcome, Record

from . import figures
from .blame import KILLS_WORKER, NOT_THE_JOB, verdict_on
from .database import count_up
from .health import absolve_host, update_health
from .queue import changes
from .rows import AnyRow, JobState, KeepResult, pack, pack_json
from .said import holds
from .tables import ATTEMPTS, EXPERIMENTS, JOBS, RECORDS
from .templates import ORDINARY, JobReader

log = logging.getLogger(__name__)

ANOTHER_LEDGER = "it is another farm's, or this ledger was put back to an earlier state; replay it where it belongs"


@dataclass(frozen=True)
class Start:
    """An attempt that is to begin: a job on a device of a host."""

    job_id: str
    serial: str
    host: str


def begin(connection: Connection, starts: Sequence[Start], ttl_s: float) -> list[Assignment]:
    """Begin attempts at waiting jobs, each under a new token; without those whose job does not wait any more, or whose
    device a person holds."""
    count_up(connection, "token", 0)  # locked from here: no hold begins between this look and the commit
    held = holds.held(connection, (start.serial for start in starts))
    starts = [start for start in starts if start.serial not in held]
    rows = _waiting(connection, [start.job_id for start in starts])
    reader = JobReader(connection, rows.values(), ORDINARY)
    found: list[tuple[Start, AnyRow, Job]] = []
    for start in (start for start in starts if start.job_id in rows):
        try:
            found.append((start, rows[start.job_id], reader.read(rows[start.job_id])))
        except Unreadable as e:
            log.error("event=unreadable job=%s error=%s", start.job_id, str(e).replace("\n", " "))
            fail(connection, JOBS.c.id == start.job_id, e.cause)
    if not found:
        return []
    first = count_up(connection, "token", len(found)) - len(found) + 1
    made = [
        Assignment(serial=to.serial, host=to.host, job=job, attempt=row.attempts + 1, token=first + index, ttl_s=ttl_s)
        for index, (to, row, job) in enumerate(found)
    ]
    _begin(connection, made, {row.experiment for _, row, _ in found})
    changes.note_lanes(connection, [row.lane_id for _, row, _ in found])
    return made


def _waiting(connection: Connection, job_ids: Sequence[str]) -> dict[str, AnyRow]:
    """Those of these jobs that wait, locked until the transaction ends."""
    mine = select(JOBS).where(JOBS.c.id.in_(job_ids), JOBS.c.state == JobState.WAITING).order_by(JOBS.c.id)
    return {row.id: row for row in connection.execute(mine.with_for_update())}


def _begin(connection: Connection, made: Sequence[Assignment], experiments: Collection[int]) -> None:
    now, change = time.time(), count_up(connection, changes.NUMBER)
    attempts = [
        {"job_id": a.job.job_id, "attempt": a.attempt, "token": a.token, "serial": a.serial, "host": a.host}
        for a in made
    ]
    columns = {"ttl_s": made[0].ttl_s, "started_at": now, "changed": change}
    connection.execute(insert(ATTEMPTS), [{**row, **columns} for row in attempts])
    placed = update(JOBS).where(JOBS.c.id == bindparam("mine")).values(state=JobState.PLACED)
    values = placed.values(attempts=bindparam("attempt_"), token=bindparam("token_"))
    connection.execute(
        values, [{"mine": row["job_id"], "attempt_": row["attempt"], "token_": row["token"]} for row in attempts]
    )
    served = update(EXPERIMENTS).where(EXPERIMENTS.c.sequence.in_(sorted(experiments)))
    connection.execute(served.values(served_at=now))


def fail(connection: Connection, which: ColumnElement[bool], cause: str) -> None:
    """End jobs that are not under way without an attempt: none could work."""
    idle = JOBS.c.state.in_((JobState.WAITING, JobState.HELD))
    over = {"state": JobState.DONE, "outcome": Outcome.FAILED, "cause": cause, "ended_at": time.time()}
    ended = update(JOBS).where(which, idle).values(**over).returning(JOBS.c.lane_id)
    changes.note_lanes(connection, set(connection.scalars(ended)))


def mark_running(connection: Connection, job_ids: list[str]) -> None:
    """These placed jobs were claimed by a worker."""
    statement = update(JOBS).where(JOBS.c.id.in_(job_ids), JOBS.c.state == JobState.PLACED)
    connection.execute(statement.values(state=JobState.RUNNING))
    changes.note_attempts(connection, ATTEMPTS.c.job_id.in_(job_ids) & ATTEMPTS.c.ended_at.is_(None))


def keep(
    connection: Connection, record: Record, body: bytes, host: str | None, budget: int, quarantine_after: int
) -> KeepResult:
    """Keep a record once, if it is of its job's newest attempt; conclude that attempt. `body`: its JSON as it came.

    Raises Unstorable where it is not of an attempt that this ledger began, Forged where `host`, which sends it, is not
    the one that was given the attempt.
    """
    row = _locked(connection, record.job_id)
    if row is None:
        raise Unstorable(f"the ledger has no job {record.job_id}", remedy=ANOTHER_LEDGER)
    if row.experiment_id != record.experiment_id:
        raise Unstorable(f"job {record.job_id} is of {row.experiment_id}, not of {record.experiment_id}")
    attempt = _attempt(connection, record.job_id, record.attempt)
    if attempt is not None and host is not None and attempt.host != host:
        what = (
            f"host {host} sends a record of attempt {record.attempt} at job {record.job_id}, which {attempt.host} has"
        )
        raise Forged(what, remedy=f"find out who has the secret of {host}; `farm host remove {host}`")
    key = (RECORDS.c.job_id == record.job_id) & (RECORDS.c.attempt == record.attempt)
    if connection.execute(select(RECORDS.c.token).where(key)).first() is not None:
        return KeepResult.DUPLICATE
    if attempt is None or attempt.token != record.token:
        what = f"attempt {record.attempt} at job {record.job_id} with token {record.token}"
        raise Unstorable(f"the ledger did not begin {what}", remedy=ANOTHER_LEDGER)
    if row.token != record.token:
        return KeepResult.STALE
    connection.execute(insert(RECORDS).values(**{**record_columns(record), "body": pack_json(body)}))
    figures.add(connection, record)
    conclude(connection, row, attempt, record.outcome, record.cause, budget, quarantine_after)
    return KeepResult.NEW


def end(
    connection: Connection,
    job_id: str,
    attempt: int,
    outcome: Outcome,
    cause: str,
    budget: int,
    quarantine_after: int,
) -> JobState | None:
    """End an attempt that left no record. Returns the job's state after it; None where it had ended already."""
    row, tried = _locked(connection, job_id), _attempt(connection, job_id, attempt)
    if row is None or tried is None or tried.ended_at is not None:
        return None
    return conclude(connection, row, tried, outcome, cause, budget, quarantine_after)


def conclude(
    connection: Connection,
    job: AnyRow,
    attempt: AnyRow,
    outcome: Outcome,
    cause: str,
    budget: int,
    quarantine_after: int,
) -> JobState:
    """Note how an attempt ended; decide what becomes of its job: final, or tried again within the budget.

    A record that comes after its attempt was given up as lost still counts, unless it too says lost.
    """
    known_lost = attempt.ended_at is not None and outcome in (Outcome.LOST, Outcome.CANCELLED)
    key = (ATTEMPTS.c.job_id == attempt.job_id) & (ATTEMPTS.c.attempt == attempt.attempt)
    ended_at, change = attempt.ended_at or time.time(), count_up(connection, changes.NUMBER)
    ended = update(ATTEMPTS).where(key).values(ended_at=ended_at, outcome=outcome, cause=cause[:40], changed=change)
    connection.execute(ended)
    if known_lost or job.state == JobState.CANCELLED:
        return JobState(job.state)
    before = _lost(connection, attempt) if outcome in (Outcome.LOST, Outcome.CANCELLED) else Counter()
    columns = {"cause": cause[:40], **_after(job, outcome, cause, before, budget)}
    if columns["cause"] == KILLS_WORKER:
        absolve_host(connection, attempt.host)
    else:
        update_health(connection, attempt, outcome, cause, quarantine_after)
    connection.execute(update(JOBS).where(JOBS.c.id == job.id).values(**columns))
    if JobState.WAITING in (job.state, columns["state"]):  # else what waits is what it was
        changes.note_lanes(connection, [job.lane_id])
    return JobState(str(columns["state"]))


def _lost(connection: Connection, attempt: AnyRow) -> Counter[str]:
    """Causes of the other attempts of the same job that were lost."""
    others = (ATTEMPTS.c.job_id == attempt.job_id) & (ATTEMPTS.c.attempt != attempt.attempt)
    rows = select(ATTEMPTS.c.cause, func.count().label("lost")).where(others, ATTEMPTS.c.outcome == Outcome.LOST)
    return Counter({row.cause: row.lost for row in connection.execute(rows.group_by(ATTEMPTS.c.cause))})


def _after(job: AnyRow, outcome: Outcome, cause: str, before: Counter[str], budget: int) -> dict[str, object]:
    """The columns of a job after an attempt with this outcome. `before`: its earlier losses by cause."""
    now = time.time()
    if outcome not in (Outcome.LOST, Outcome.CANCELLED):
        return {"state": JobState.DONE, "outcome": outcome, "ended_at": now}
    failures = job.failures + (cause not in NOT_THE_JOB)
    verdict = verdict_on(cause, before, failures, budget)
    columns = {"failures": failures, "cause": verdict.cause}
    if verdict.is_final:
        return {**columns, "state": JobState.DONE, "outcome": Outcome.LOST, "ended_at": now}
    return {**columns, "state": JobState.WAITING, "not_before": now + verdict.pause_s}


def record_columns(record: Record) -> dict[str, object]:
    return {
        "job_id": record.job_id,
        "attempt": record.attempt,
        "token": record.token,
        "experiment_id": record.experiment_id,
        "cell_id": record.cell_id,
        "serial": record.device.serial,
        "outcome": record.outcome,
        "cause": record.cause[:40],
        "source": record.source,
        "started_at": record.started_at,
        "kept_at": time.time(),
        "body": pack(record),
    }


def _locked(connection: Connection, job_id: str) -> AnyRow | None:
    """A job's row, locked until the transaction ends (SQLite's writers have the whole database)."""
    named = select(JOBS, EXPERIMENTS.c.id.label("experiment_id"))
    mine = named.join(EXPERIMENTS, EXPERIMENTS.c.sequence == JOBS.c.experiment).where(JOBS.c.id == job_id)
    return connection.execute(mine.with_for_update(of=JOBS)).first()


def _attempt(connection: Connection, job_id: str, attempt: int) -> AnyRow | None:
    key = (ATTEMPTS.c.job_id == job_id) & (ATTEMPTS.c.attempt == attempt)
    return connection.execute(select(ATTEMPTS).where(key)).first()
