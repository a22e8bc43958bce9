"""Keep records: each once, of its job's newest attempt, which it concludes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, bindparam, insert, select

from orchestrator.ledger import figures, templates
from orchestrator.ledger.database import execute_many, padded
from orchestrator.ledger.packed import pack, pack_json
from orchestrator.ledger.rows import AnyRow, KeepResult
from orchestrator.ledger.tables import ATTEMPTS, EXPERIMENTS, JOBS, RECORDS
from orchestrator.model.errors import Forged, Unstorable
from orchestrator.model.record import Outcome, Record

from .end import Ended, conclude_all
from .times import began, believed

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


Note = Callable[[Record], Callable[[], object]]
"""Reads what it wants of a record, and gives what is to be done when the record is kept."""
Row = dict[str, Any]
_NEW = KeepResult.NEW  # members of an enum are slow to look up
_JOB_ID = re.compile(rb'"job_id": ?"([\w.-]{1,32})"')


class Sent(NamedTuple):
    """A record, its JSON as it came, and the host that sends it (None: nobody does)."""

    record: Record
    body: bytes
    host: str | None


class Prepared(NamedTuple):
    """The part of a sent record that is judged and stored."""

    job_id: str
    attempt: int
    token: int
    experiment_id: str
    host: str | None
    of: tuple[str, str, int]
    """The device, cell and block of which it says it is."""
    cell_id: str
    """The cell of its job; empty where that cannot be read."""
    outcome: Outcome
    cause: str
    took_s: float | None
    """The time from the start of its block, where it had waited in line before."""
    row: Row
    figures: Row
    noted: Callable[[], object]


def seeming_job(body: bytes) -> str:
    """Return the job of which a record seems to be, before it is read; empty where that is not seen at once."""
    found = _JOB_ID.search(body)
    return found[1].decode() if found else ""


def prepare(
    connection: Connection,
    sent: Iterable[Sent],
    *,
    jobs: Collection[str] = (),
    note: Note = lambda _: lambda: None,
) -> list[Prepared]:
    """Everything about these records that needs no lock: a transaction that only reads is enough.

    `sent` is read one by one, and no record is held on to: many at once are slow to handle. `jobs`: of which they will
    be, as far as that is known; these are asked for together. Raises Unstorable where one is of no job.
    """
    known = [job_id for job_id in jobs if job_id]
    measured, made = templates.measured_of(connection, known), list[Prepared]()
    begun = began(connection, known)
    for record, body, host in sent:
        if record.job_id not in measured:
            measured |= templates.measured_of(connection, [record.job_id])
            begun |= began(connection, [record.job_id])
        if record.job_id not in measured:
            raise _of_no_job(record.job_id)
        if host is not None and (at := begun.get((record.job_id, record.attempt))) is not None:
            record, body = believed(record, body, at)
        in_line = record.session is not None and record.session.number > 1
        job = measured[record.job_id]
        made.append(
            Prepared(
                record.job_id,
                record.attempt,
                record.token,
                record.experiment_id,
                host,
                (record.device.serial, record.cell_id, record.block),
                job.cell.cell_id if job is not None else "",
                record.outcome,
                record.cause,
                record.ended_at - record.started_at if in_line else None,
                record_columns(record, body),
                figures.columns(record, job),
                note(record),
            )
        )
    return made


def keep_all(
    connection: Connection, records: Sequence[Prepared], budget: int, quarantine_after: int
) -> list[KeepResult]:
    """Keep each record once, if it is of its job's newest attempt; conclude that attempt.

    Raises Unstorable where one is not of an attempt that this ledger began, Forged where `host`, which sends it, is not
    the one that was given the attempt, or where it says it is of something else than the attempt: then the whole
    transaction is to be given up.
    """
    known = _Known(connection, {one.job_id for one in records})
    results = [known.judge(one) for one in records]
    new = [one for one, result in zip(records, results, strict=True) if result is _NEW]
    if new:
        execute_many(connection, _ADD, [one.row for one in new])
        figures.put(connection, [one.figures for one in new])
        conclude_all(connection, [known.ended(one) for one in new], budget, quarantine_after)
    return results


def _of_no_job(job_id: str) -> Unstorable:
    return Unstorable(f"the ledger has no job {job_id}", remedy=ANOTHER_LEDGER)


class _Known:
    """The ledger's rows of the jobs that were asked for."""

    def __init__(self, connection: Connection, job_ids: Collection[str]) -> None:
        these = {"these": padded(job_ids)}
        self._jobs: dict[str, AnyRow] = {row.id: row for row in connection.execute(_JOBS, these).all()}
        attempts = connection.execute(_ATTEMPTS, these).all()  # rows one by one take three times as long
        self._attempts: dict[tuple[str, int], AnyRow] = {(row.job_id, row.attempt): row for row in attempts}
        self._kept = {key for key, row in self._attempts.items() if row.is_kept}

    def judge(self, record: Prepared) -> KeepResult:
        """Judge a record; one that is new counts as kept from now on. Raises Unstorable, Forged."""
        row, key = self._jobs.get(record.job_id), (record.job_id, record.attempt)
        if row is None:
            raise _of_no_job(record.job_id)
        if row.experiment_id != record.experiment_id:
            raise Unstorable(f"job {record.job_id} is of {row.experiment_id}, not of {record.experiment_id}")
        attempt, host = self._attempts.get(key), record.host
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
        if record.of != (given := (attempt.serial, record.cell_id or record.of[1], row.block)):
            what = f"attempt {record.attempt} at job {record.job_id} is of device, cell and block {given}"
            raise Forged(f"{what}, and its record says {record.of}", remedy="find out what its host did there")
        self._kept.add(key)
        return _NEW

    def ended(self, record: Prepared) -> Ended:
        """The attempt that a record concludes."""
        attempt = self._attempts[record.job_id, record.attempt]
        return Ended(self._jobs[record.job_id], attempt, record.outcome, record.cause, record.took_s)


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
