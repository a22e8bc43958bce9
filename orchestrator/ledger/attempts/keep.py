"""Keep records: each once, of its job's newest attempt, which it concludes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

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
Row = dict[str, Any]
_NEW = KeepResult.NEW  # members of an enum are slow to look up
_JOB_ID = re.compile(rb'"job_id": ?"([\w.-]{1,32})"')


class Sent(NamedTuple):
    """A record, its JSON as it came, and the host that sends it (None: nobody does)."""

    record: Record
    body: bytes
    host: str | None


def seeming_job(body: bytes) -> str:
    """Of which job a record seems to be, before it is read; empty where that is not seen at once."""
    found = _JOB_ID.search(body)
    return found[1].decode() if found else ""


def keep_all(
    connection: Connection,
    sent: Iterable[Sent],
    budget: int,
    quarantine_after: int,
    *,
    jobs: Iterable[str] = (),
    note: Note = lambda _: None,
) -> list[KeepResult]:
    """Keep each record once, if it is of its job's newest attempt; conclude that attempt. `note` gets the new ones.

    `sent` is read one by one, and no record is held on to: many at once are slow to handle. `jobs`: of which they will
    be, as far as that is known; these are asked for together.

    Raises Unstorable where one is not of an attempt that this ledger began, Forged where `host`, which sends it, is not
    the one that was given the attempt: then the whole transaction is to be given up.
    """
    known, rows, made, ended = _Known(connection, jobs), list[Row](), list[Row](), list[Ended]()
    results = []
    for one in sent:
        result = known.judge(one.record, one.host)
        results.append(result)
        if result is _NEW:
            rows.append(record_columns(one.record, one.body))
            made.append(figures.columns(one.record, known.measured(one.record.job_id)))
            ended.append(known.ended(one.record))
            note(one.record)
    if rows:
        execute_many(connection, _ADD, rows)
        figures.put(connection, made)
        conclude_all(connection, ended, budget, quarantine_after)
    return results


class _Known:
    """What the ledger has of the jobs that were asked for."""

    def __init__(self, connection: Connection, job_ids: Iterable[str]) -> None:
        self._connection = connection
        self._asked = set[str]()
        self._jobs: dict[str, AnyRow] = {}
        self._attempts: dict[tuple[str, int], AnyRow] = {}
        self._kept = set[tuple[str, int]]()
        self._measured: dict[int, templates.Measured] = {}
        self._ask({job_id for job_id in job_ids if job_id})

    def _ask(self, job_ids: set[str]) -> None:
        self._asked |= job_ids
        these = {"these": sorted(job_ids)}
        jobs = {row.id: row for row in self._connection.execute(_JOBS, these).all()} if job_ids else {}
        if not jobs:
            return
        attempts = self._connection.execute(_ATTEMPTS, these).all()  # rows one by one take three times as long
        found = {(row.job_id, row.attempt): row for row in attempts}
        self._jobs |= jobs
        self._attempts |= found
        self._kept |= {key for key, row in found.items() if row.is_kept}
        self._measured |= templates.measured(self._connection, {row.template_id for row in jobs.values()})

    def measured(self, job_id: str) -> templates.Measured | None:
        """What a job measures; None where that cannot be read."""
        return self._measured.get(self._jobs[job_id].template_id)

    def judge(self, record: Record, host: str | None) -> KeepResult:
        """What becomes of a record; one that is new counts as kept from now on. Raises Unstorable, Forged."""
        if record.job_id not in self._asked:
            self._ask({record.job_id})
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
        return _NEW

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
