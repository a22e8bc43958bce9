"""The attempts of jobs, as the queue asks for them: under way, lost where, and the latest of an experiment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, func, select

from orchestrator.ledger.blame import HOST, NOBODY, SILENCE, SUSPECT_AFTER
from orchestrator.ledger.database import padded, parts
from orchestrator.ledger.rows import AnyRow, JobState, RunningRow, block_label
from orchestrator.ledger.tables import ATTEMPTS, EXPERIMENTS, JOBS, NAMED_JOBS, TEMPLATES
from orchestrator.model.base import like
from orchestrator.model.live.usage import Account
from orchestrator.model.record import Outcome

_THESE: BindParameter[Any] = bindparam("these", expanding=True)


class Served(NamedTuple):
    """The latest attempt of an experiment."""

    at: float
    """Unix time."""
    serial: str
    """Its device; empty where there was none."""


_SERVED = select(EXPERIMENTS.c.id, EXPERIMENTS.c.sequence, EXPERIMENTS.c.served_at).where(EXPERIMENTS.c.id.in_(_THESE))
_NEWEST = (
    select(func.max(ATTEMPTS.c.token))
    .select_from(JOBS.join(ATTEMPTS, JOBS.c.id == ATTEMPTS.c.job_id))
    .where(JOBS.c.experiment.in_(_THESE))
    .group_by(JOBS.c.experiment)
)
_LATEST = (
    select(EXPERIMENTS.c.id, ATTEMPTS.c.serial)
    .select_from(NAMED_JOBS.join(ATTEMPTS, JOBS.c.id == ATTEMPTS.c.job_id))
    .where(ATTEMPTS.c.token.in_(_NEWEST))
)


def served(connection: Connection, experiments: Iterable[str]) -> dict[str, Served]:
    """The latest attempt of each of these experiments."""
    found: dict[str, Served] = {}
    for part in parts(experiments):
        rows = connection.execute(_SERVED, {"these": part}).all()
        begun = [row.sequence for row in rows if row.served_at]
        last = {row.id: row.serial for row in connection.execute(_LATEST, {"these": padded(begun)})} if begun else {}
        found |= {row.id: Served(float(row.served_at), last.get(row.id, "")) for row in rows}
    return found


_LOST = (ATTEMPTS.c.job_id.in_(_THESE), ATTEMPTS.c.outcome == Outcome.LOST)
_FAILED_ON = select(ATTEMPTS.c.job_id, ATTEMPTS.c.serial).where(*_LOST, ATTEMPTS.c.cause.not_in(NOBODY | HOST))
_SUSPECTS = (
    select(ATTEMPTS.c.job_id)
    .where(*_LOST, ATTEMPTS.c.cause.in_(SILENCE))
    .group_by(ATTEMPTS.c.job_id)
    .having(func.count() >= SUSPECT_AFTER)
)


def failed_on(connection: Connection, job_ids: Sequence[str]) -> dict[str, set[str]]:
    """Job -> devices on which attempts were lost."""
    failed: dict[str, set[str]] = defaultdict(set)
    for part in parts(job_ids):
        for job_id, serial in connection.execute(_FAILED_ON, {"these": part}):
            failed[job_id].add(serial)
    return failed


def suspects(connection: Connection, job_ids: Sequence[str]) -> set[str]:
    """Return those of these jobs that run alone on their host."""
    return {job for part in parts(job_ids) for job in connection.scalars(_SUSPECTS, {"these": part})}


_NAMED = (EXPERIMENTS.c.id.label("experiment_id"), EXPERIMENTS.c.project, EXPERIMENTS.c.submitted_by,
          TEMPLATES.c.label, JOBS.c.block, JOBS.c.state, JOBS.c.attempts)  # fmt: skip
_ATTEMPTS = select(ATTEMPTS, *_NAMED).select_from(NAMED_JOBS.join(ATTEMPTS, JOBS.c.id == ATTEMPTS.c.job_id))
_UNDER_WAY = _ATTEMPTS.where(ATTEMPTS.c.ended_at.is_(None))
_CHANGED_ATTEMPTS = _ATTEMPTS.where(ATTEMPTS.c.changed > bindparam("since"))


def attempt_rows(connection: Connection, since: int | None = None) -> Sequence[AnyRow]:
    """Attempts with their jobs, oldest token first: those that changed after a change, or those under way."""
    found = connection.execute(_UNDER_WAY) if since is None else connection.execute(_CHANGED_ATTEMPTS, {"since": since})
    # sorted here: asked for an order, SQLite goes through all attempts that there ever were, by the index of that order
    return sorted(found, key=lambda row: int(row.token))


def running_rows(connection: Connection, rows: Sequence[AnyRow]) -> list[RunningRow]:
    """`rows`: of `attempt_rows`, that have not ended."""
    alone = suspects(connection, [row.job_id for row in rows if row.attempts >= SUSPECT_AFTER])
    return [
        like(
            RunningRow,
            row,
            label=block_label(row.label, row.block),
            state=JobState(row.state),
            alone=row.job_id in alone,
            account=Account(row.project, row.submitted_by),
        )
        for row in rows
    ]
