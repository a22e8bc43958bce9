"""Store imports: experiments whose jobs are over from the start."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, insert, update

from orchestrator.ledger import experiments, figures, templates
from orchestrator.ledger.attempts import record_columns
from orchestrator.ledger.database import Database, count_up
from orchestrator.ledger.rows import JobState
from orchestrator.ledger.tables import ATTEMPTS, JOBS, RECORDS
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import ForeignJob
from orchestrator.model.record import Record

from .pieces import pieces

AT_ONCE = 100
"""Blocks: a fraction of a second's writing."""


@dataclass(frozen=True)
class Imported:
    """A block that was measured elsewhere, with the record of each attempt at it, the oldest first."""

    job: ForeignJob
    records: tuple[Record, ...]


class Prepared:
    """Rows of an import, made before the transaction, for which others wait. Every record has a fencing token of its
    own, as if its attempt had begun here."""

    def __init__(self, found: Sequence[Imported], first: int, tokens: Iterator[int]) -> None:
        """`first`: place of the first block in the import."""
        self.jobs = templates.prepare([([one.job for one in found], JobState.DONE)], first)
        self.over: list[dict[str, Any]] = []
        self.attempts: list[dict[str, Any]] = []
        self.records: list[dict[str, Any]] = []
        self.figures: list[dict[str, Any]] = []
        for one in found:
            records = [record.model_copy(update={"token": next(tokens)}) for record in one.records]
            last, measured = records[-1], templates.Measured(one.job.cell, one.job.sampling.mode)
            done = {"outcome": last.outcome, "cause": last.cause[:40], "attempts": last.attempt, "token": last.token}
            self.over.append({"job": one.job.job_id, **{f"new_{name}": value for name, value in done.items()}})
            self.attempts += [{"ended_at": record.ended_at, **_attempt(record)} for record in records]
            self.records += map(record_columns, records)
            self.figures += [figures.columns(record, measured) for record in records]


_OVER = ("outcome", "cause", "attempts", "token")
_END = update(JOBS).where(JOBS.c.id == bindparam("job")).values({name: bindparam(f"new_{name}") for name in _OVER})


def adopt(database: Database, experiment_id: str, experiment: Experiment, found: Sequence[Imported]) -> bool:
    """Store them in their order. False, and nothing is changed, where the experiment is there already."""
    many = sum(len(one.records) for one in found)
    with database.write() as connection:
        last = count_up(connection, "token", many)
    tokens = iter(range(last - many + 1, last + 1))
    rows = [Prepared(found[first : first + AT_ONCE], first, tokens) for first in range(0, len(found), AT_ONCE)]
    with pieces(database) as into:
        if experiments.is_there(into.connection, experiment_id):
            return False
        number = count_up(into.connection, "experiment")
        into.add(experiments.columns(number, experiment_id, experiment))
        for part in rows:
            templates.store(into.connection, number, part.jobs, ended_at=time.time())
            into.connection.execute(_END, part.over)
            into.connection.execute(insert(ATTEMPTS), part.attempts)
            into.connection.execute(insert(RECORDS), part.records)
            figures.put(into.connection, part.figures)
            into.came([row["job"] for row in part.over])
    return True


def _attempt(record: Record) -> dict[str, object]:
    return {
        "job_id": record.job_id,
        "attempt": record.attempt,
        "token": record.token,
        "serial": record.device.serial,
        "host": record.device.host,
        "ttl_s": 0.0,
        "started_at": record.started_at,
        "outcome": record.outcome,
        "cause": record.cause[:40],
    }
