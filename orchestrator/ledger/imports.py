"""Store imports: experiments whose jobs are over from the start."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, insert, update

from orchestrator.model.experiment import Experiment
from orchestrator.model.job import ForeignJob
from orchestrator.model.record import Record

from . import experiments, figures, templates
from .attempts import counted, record_columns
from .database import count_up
from .rows import JobState
from .tables import ATTEMPTS, JOBS, RECORDS


@dataclass(frozen=True)
class Imported:
    """A block that was measured elsewhere, with the record of each attempt at it, the oldest first."""

    job: ForeignJob
    records: tuple[Record, ...]


def adopt(connection: Connection, experiment_id: str, experiment: Experiment, found: Iterable[Imported]) -> bool:
    """Store them in their order; every record gets a fencing token of its own, as if its attempt had begun here.

    False, and nothing is changed, where the experiment is there already.
    """
    if experiments.is_there(connection, experiment_id):
        return False
    now = time.time()
    sequence = experiments.add(connection, experiment_id, experiment)
    blocks = list(found)
    jobs = templates.prepare([([one.job for one in blocks], JobState.DONE)])
    templates.store(connection, sequence, jobs, ended_at=now)
    for one in blocks:
        records = [_numbered(connection, record) for record in one.records]
        last = records[-1]
        done = {"outcome": last.outcome, "cause": last.cause[:40], "attempts": last.attempt, "token": last.token}
        connection.execute(update(JOBS).where(JOBS.c.id == one.job.job_id).values(**done))
        for record in records:
            connection.execute(insert(ATTEMPTS).values(ended_at=record.ended_at, **_attempt(record)))
            connection.execute(insert(RECORDS).values(**record_columns(record)))
        measured = templates.Measured(one.job.cell, one.job.sampling.mode)
        figures.put(connection, [figures.columns(record, measured) for record in records])
    counted.come(connection, experiment_id)
    return True


def _numbered(connection: Connection, record: Record) -> Record:
    return record.model_copy(update={"token": count_up(connection, "token")})


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
