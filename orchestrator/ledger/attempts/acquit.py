"""Acquit the jobs that ran beside one that kills its worker: that the worker fell silent then says nothing of them."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import Connection, bindparam, select, update

from orchestrator.ledger.blame import ACQUITTED, SILENCE
from orchestrator.ledger.database import padded
from orchestrator.ledger.queue import changes
from orchestrator.ledger.rows import AnyRow
from orchestrator.ledger.tables import ATTEMPTS, JOBS
from orchestrator.model.record import Outcome

from .counted import correct

SLACK_S = 10.0
"""The time for late turns beyond a lease's life, within which all that one worker ran is reaped."""
_SILENT = (ATTEMPTS.c.outcome == Outcome.LOST, ATTEMPTS.c.cause.in_(SILENCE))
_OF_KILLER = select(ATTEMPTS).where(*_SILENT, ATTEMPTS.c.job_id == bindparam("killer"))
_BESIDE = select(ATTEMPTS.c.job_id, ATTEMPTS.c.attempt, ATTEMPTS.c.cause, JOBS.c.lane_id).where(
    *_SILENT,
    ATTEMPTS.c.host == bindparam("host"),
    ATTEMPTS.c.job_id == JOBS.c.id,
    ATTEMPTS.c.job_id != bindparam("killer"),
    ATTEMPTS.c.started_at < bindparam("ended"),
    ATTEMPTS.c.ended_at.between(bindparam("least"), bindparam("most")),
)
_ACQUITTED = (
    update(ATTEMPTS)
    .where(ATTEMPTS.c.job_id == bindparam("job_"), ATTEMPTS.c.attempt == bindparam("attempt_"))
    .values(cause=ACQUITTED)
)


def acquit_beside(connection: Connection, killer: str) -> None:
    """Their attempts that were lost together with one of this job have another cause from now on."""
    deaths = connection.execute(_OF_KILLER, {"killer": killer}).all()
    beside = {(row.job_id, row.attempt): row for death in deaths for row in _beside(connection, death)}
    if not beside:
        return
    connection.execute(_ACQUITTED, [{"job_": job_id, "attempt_": attempt} for job_id, attempt in beside])
    correct(connection, "attempts", Outcome.LOST, Counter(row.cause for row in beside.values()), ACQUITTED)
    changes.note_lanes(connection, {row.lane_id for row in beside.values()})
    jobs = ATTEMPTS.c.job_id.in_(padded({job_id for job_id, _ in beside}))
    changes.note_attempts(connection, ATTEMPTS.c.ended_at.is_(None) & jobs)


def _beside(connection: Connection, death: AnyRow) -> list[AnyRow]:
    within_s = death.ttl_s + SLACK_S
    asked = {"killer": death.job_id, "host": death.host, "ended": death.ended_at}
    near = {"least": max(death.started_at, death.ended_at - within_s), "most": death.ended_at + within_s}
    return list(connection.execute(_BESIDE, {**asked, **near}))
