"""Keep records: each once, of its job's newest attempt, which it concludes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, insert, select

from orchestrator.errors import Forged, Unstorable
from orchestrator.ledger import figures, templates
from orchestrator.ledger.database import execute_many
from orchestrator.ledger.rows import AnyRow, KeepResult, pack, pack_json
from orchestrator.ledger.tables import ATTEMPTS, EXPERIMENTS, JOBS, RECORDS
from orchestrator.model.record import Record

from .end import Ended, conclude_all

ANOTHER_LEDGER = "it is another farm's, or this ledger was put back to an earlier state; replay it where it belongs"
_THESE: BindParameter[str] = bindparam("these", expanding=True)
_JOBS = (
    select(JOBS, EXPERIMENTS.c.id.label("experiment_id"))
    .join(EXPERIMENTS, EXPERIMENTS.c.sequence == JOBS.c.experiment)
    .where(JOBS.c.id.in_(_THESE))
    .order_by(JOBS.c.id)
    .with_for_update(of=JOBS)
)
"""Locked until the transaction ends, always in the same order (SQLite's writers have the whole database)."""
_SAME = (RECORDS.c.job_id == ATTEMPTS.c.job_id) & (RECORDS.c.attempt == ATTEMPTS.c.attempt)
_ATTEMPTS = (
    select(ATTEMPTS, RECORDS.c.attempt.is_not(None).label("is_kept"))
    .outerjoin(RECORDS, _SAME)
    .where(ATTEMPTS.c.job_id.in_(_THESE))
)
"""Each record is of an attempt."""
_ADD = insert(RECORDS)


Note = Callable[[Record], object]


class Sent(NamedTuple):
    """A record, its JSON as it came, and the host that sends it (None: nobody does)."""

    record: Record
    body: bytes
    host: str | None


def keep_all(connection: Connection, sent: Sequence[Sent], budget: int, quarantine_after: int) -> list[KeepResult]:
    """Keep each record once, if it is of its job's newest attempt; conclude that attempt.

    Raises Unstorable where one is not of an attempt that this ledger began, Forged where `host`, which sends it, is not
    the one that was given the attempt: then the whole transaction is to be given up.
    """
    known = _Known(connection, {one.record.job_id for one in sent})
    results = [known.judge(one.record, one.host) for one in sent]
    new = [one for one, result in zip(sent, results, strict=True) if result is KeepResult.NEW]
    if new:
        rows = [record_columns(one.record, one.body) for one in new]
        execute_many(connection, _ADD, rows)
        figures.add(connection, [one.record for one in new], known.measured(connection))
        conclude_all(connection, [known.ended(one.record) for one in new], budget, quarantine_after)
    return results


def note_new(sent: Sequence[Sent], results: Sequence[KeepResult], note: Note) -> None:
    """Show the records that are new, once they are kept."""
    for one, result in zip(sent, results, strict=True):
        if result is KeepResult.NEW:
            note(one.record)


class _Known:
    """What the ledger has of these jobs."""

    def __init__(self, connection: Connection, job_ids: set[str]) -> None:
        these = {"these": sorted(job_ids)}
        self._jobs: dict[str, AnyRow] = {row.id: row for row in connection.execute(_JOBS, these).all()}
        attempts = connection.execute(_ATTEMPTS, these).all()  # rows one by one take three times as long
        self._attempts: dict[tuple[str, int], AnyRow] = {(row.job_id, row.attempt): row for row in attempts}
        self._kept = {key for key, row in self._attempts.items() if row.is_kept}

    def measured(self, connection: Connection) -> dict[str, templates.Measured]:
        """What each job measures that can be read."""
        found = templates.measured(connection, {row.template_id for row in self._jobs.values()})
        return {job_id: found[row.template_id] for job_id, row in self._jobs.items() if row.template_id in found}

    def judge(self, record: Record, host: str | None) -> KeepResult:
        """What becomes of a record; one that is new counts as kept from now on. Raises Unstorable, Forged."""
        row, key = self._jobs.get(record.job_id), (record.job_id, record.attempt)
        if row is None:
            raise Unstorable(f"the ledger has no job {record.job_id}", remedy=ANOTHER_LEDGER)
        if row.experiment_id != record.experiment_id:
            raise Unstorable(f"job {record.job_id} is of {row.experiment_id}, not of {record.experiment_id}")
        attempt = self._attempts.get(key)
        if attempt is not None and host is not None and attempt.host != host:
            whose = f"attempt {record.attempt} at job {record.job_id}, which {attempt.host} has"
            remedy = f"find out who has the secret of {host}; `farm host remove {host}`"
            raise Forged(f"host {host} sends a record of {whose}", remedy=remedy)
        if key in self._kept:
            return KeepResult.DUPLICATE
        if attempt is None or attempt.token != record.token:
            what = f"attempt {record.attempt} at job {record.job_id} with token {record.token}"
            raise Unstorable(f"the ledger did not begin {what}", remedy=ANOTHER_LEDGER)
        if row.token != record.token:
            return KeepResult.STALE
        self._kept.add(key)
        return KeepResult.NEW

    def ended(self, record: Record) -> Ended:
        """The attempt that a record concludes."""
        attempt = self._attempts[record.job_id, record.attempt]
        in_line = record.session is not None and record.session.number > 1
        took_s = record.ended_at - record.started_at if in_line else None
        return Ended(self._jobs[record.job_id], attempt, record.outcome, record.cause, took_s)


def record_columns(record: Record, body: bytes | None = None) -> dict[str, object]:
    """`body`: its JSON, where that came with more than this version knows."""
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
        "body": pack(record) if body is None else pack_json(body),
    }
