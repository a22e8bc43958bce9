"""Records of an experiment of five blocks on their way: in the spool of a host, and in its stream."""

from __future__ import annotations

from redis import Redis

from orchestrator.coordination import keys
from orchestrator.ledger import Ledger
from orchestrator.model.job import Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Record
from orchestrator.scheduling.intake import Intake
from tests.unit.orchestrator import make
from workers.spool import Spool

JOBS = [make.job(block=block) for block in range(5)]


def begun(ledger: Ledger, job: Job) -> Assignment:
    assignment = ledger.begin_attempt(job.job_id, "A", "lab", 15.0)
    assert assignment is not None
    return assignment


def measured(ledger: Ledger, spool: Spool, redis: Redis) -> list[Record]:
    """An experiment of five blocks, whose records are in the spool and in the stream."""
    ledger.submit("first-1", make.many(5), JOBS)
    found = [make.record(job, attempt=1, token=begun(ledger, job).token) for job in JOBS]
    for record in found:
        spool.add(record)
    spool.send(redis)
    return found


def nothing_is_lost(spool: Spool, redis: Redis, records: list[Record]) -> None:
    """All copies are there during the outage."""
    assert redis.xlen(keys.records("lab")) == len(spool.waiting()) == len(records)


def all_are_kept(ledger: Ledger, spool: Spool, redis: Redis, records: list[Record]) -> None:
    Intake(redis, ledger).drain()
    spool.send(redis)
    assert sorted(r.job_id for r in ledger.records("first-1")) == sorted(r.job_id for r in records)
    assert ledger.dead.every() == [] and spool.waiting() == [] and redis.xlen(keys.records("lab")) == 0
