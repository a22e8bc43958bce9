"""Begin attempts at waiting jobs, each under a growing fencing token; note which of them were claimed."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, bindparam, insert, select, update

from orchestrator.errors import Unreadable
from orchestrator.ledger.database import count_up
from orchestrator.ledger.queue import changes
from orchestrator.ledger.rows import AnyRow, JobState
from orchestrator.ledger.said import holds
from orchestrator.ledger.tables import ATTEMPTS, EXPERIMENTS, JOBS
from orchestrator.ledger.templates import ORDINARY, JobReader
from orchestrator.model.job import Job
from orchestrator.model.lease import Assignment
from orchestrator.model.record import Outcome

log = logging.getLogger(__name__)
_WAITING = (
    select(JOBS)
    .where(JOBS.c.id.in_(bindparam("these", expanding=True)), JOBS.c.state == JobState.WAITING)
    .order_by(JOBS.c.id)
    .with_for_update()
)
_BEGUN = insert(ATTEMPTS)
_PLACED = (
    update(JOBS)
    .where(JOBS.c.id == bindparam("mine"))
    .values(state=JobState.PLACED, attempts=bindparam("attempt_"), token=bindparam("token_"))
)


@dataclass(frozen=True)
class Start:
    """An attempt that is to begin: a job on a device of a host."""

    job_id: str
    serial: str
    host: str


def begin(connection: Connection, starts: Sequence[Start], ttl_s: float) -> list[Assignment]:
    """Begin attempts at waiting jobs, each under a new token; without those whose job does not wait any more, or whose
    device a person holds."""
    first = count_up(connection, "token", len(starts)) - len(starts) + 1  # locked from here: no hold begins meanwhile
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
    made = [
        Assignment(serial=to.serial, host=to.host, job=job, attempt=row.attempts + 1, token=first + index, ttl_s=ttl_s)
        for index, (to, row, job) in enumerate(found)
    ]
    change = changes.note_lanes(connection, [row.lane_id for _, row, _ in found])
    _begin(connection, made, {row.experiment for _, row, _ in found}, change)
    return made


def _waiting(connection: Connection, job_ids: Sequence[str]) -> dict[str, AnyRow]:
    """Those of these jobs that wait, locked until the transaction ends."""
    return {row.id: row for row in connection.execute(_WAITING, {"these": job_ids})}


def _begin(connection: Connection, made: Sequence[Assignment], experiments: Collection[int], change: int) -> None:
    now = time.time()
    attempts = [
        {"job_id": a.job.job_id, "attempt": a.attempt, "token": a.token, "serial": a.serial, "host": a.host}
        for a in made
    ]
    columns = {"ttl_s": made[0].ttl_s, "started_at": now, "changed": change}
    connection.execute(_BEGUN, [{**row, **columns} for row in attempts])
    connection.execute(
        _PLACED, [{"mine": row["job_id"], "attempt_": row["attempt"], "token_": row["token"]} for row in attempts]
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
