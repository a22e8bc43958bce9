"""Store imports: experiments whose jobs are over from the start."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, update

from orchestrator.model.experiment import Experiment
from orchestrator.model.job import ForeignJob
from orchestrator.model.record import Record

from . import experiments, figures, templates
from .attempts import counted, record_columns
from .rows import JobState
from .tables import ATTEMPTS, JOBS, RECORDS


@dataclass(frozen=True)
class Imported:
    """A block that was measured elsewhere, with the record of each attempt at it, the oldest first."""

    job: ForeignJob
    records: tuple[Record, ...]


class Prepared:
    """All rows of an import, made before the transaction, for which others wait. Every record has a fencing token of
    its own, as if its attempt had begun here."""

    def __init__(self, found: Sequence[Imported], last_token: int) -> None:
        """`last_token`: of as many as there are records, all of which are this import's."""
        self.jobs = templates.prepare([([one.job for one in found], JobState.DONE)])
        self.over: list[dict[str, Any]] = []
        self.attempts: list[dict[str, Any]] = []
        self.records: list[dict[str, Any]] = []
        self.figures: list[dict[str, Any]] = []
        tokens = iter(range(last_token - records_in(found) + 1, last_token + 1))
        for one in found:
            records = [record.model_copy(update={"token": next(tokens)}) for record in one.records]
            last, measured = records[-1], templates.Measured(one.job.cell, one.job.sampling.mode)
            done = {"outcome": last.outcome, "cause": last.cause[:40], "attempts": last.attempt, "token": last.token}
            self.over.append({"job": one.job.job_id, **{f"new_{name}": value for name, value in done.items()}})
            self.attempts += [{"ended_at": record.ended_at, **_attempt(record)} for record in records]
            self.records += map(record_columns, records)
            self.figures += [figures.columns(record, measured) for record in records]


def records_in(found: Sequence[Imported]) -> int:
    return sum(len(one.records) for one in found)


_OVER = ("outcome", "cause", "attempts", "token")
_END = update(JOBS).where(JOBS.c.id == bindparam("job")).values({name: bindparam(f"new_{name}") for name in _OVER})


def adopt(connection: Connection, experiment_id: str, experiment: Experiment, rows: Prepared) -> bool:
    """Store them in their order. False, and nothing is changed, where the experiment is there already."""
    if experiments.is_there(connection, experiment_id):
        return False
    sequence = experiments.add(connection, experiment_id, experiment)
    templates.store(connection, sequence, rows.jobs, ended_at=time.time())
    if rows.records:
        connection.execute(_END, rows.over)
        connection.execute(insert(ATTEMPTS), rows.attempts)
        connection.execute(insert(RECORDS), rows.records)
        figures.put(connection, rows.figures)
    counted.come(connection, experiment_id)
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
