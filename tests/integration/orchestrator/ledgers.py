"""Ledgers with something in them, on SQLite and on PostgreSQL, for what looks after them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from sqlalchemy import create_engine, text

from orchestrator.ledger import Ledger
from orchestrator.ledger.database import Database
from orchestrator.model.event import Sample
from orchestrator.model.job import Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Record
from tests.unit.orchestrator import make


def emptied(url: str) -> str:
    """A PostgreSQL database without tables, and without connections that an earlier test left. A new database would be
    a thousand files."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"))
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return url


def begun(ledger: Ledger, job: Job) -> Assignment:
    assignment = ledger.begin_attempt(job.job_id, "A", "lab", 15.0)
    assert assignment is not None
    return assignment


def record_of(assignment: Assignment, **more: Any) -> Record:
    samples = tuple(
        Sample(seq=i, t_ns=i, index=i, phase="timed", start_ns=i * 10**9, duration_ns=5 * 10**6 + i) for i in range(6)
    )
    fields = {"attempt": assignment.attempt, "token": assignment.token, "serial": assignment.serial}
    return make.record(assignment.job, **{**fields, "samples": samples, **more})


def measured(ledger: Ledger, job: Job) -> Record:
    """A job that was run, with its record."""
    record = record_of(begun(ledger, job))
    ledger.keep(record)
    return record


def filled(ledger: Ledger, blocks: int, experiment_id: str = "first-1") -> list[Job]:
    """An experiment, of which all jobs but the last one were run."""
    jobs = [make.job(experiment_id, block=block) for block in range(blocks)]
    ledger.submit(experiment_id, make.many(blocks, name=experiment_id.partition("-")[0]), jobs)
    for job in jobs[:-1]:
        measured(ledger, job)
    return jobs


@contextmanager
def database(url: str) -> Iterator[Database]:
    with closing(Database(url)) as opened:
        yield opened


def changed(url: str, *statements: str) -> None:
    """Do what the ledger never would."""
    with database(url) as opened, opened.write() as connection:
        if connection.dialect.name == "sqlite":
            connection.execute(text("PRAGMA defer_foreign_keys=ON"))
        for statement in statements:
            connection.execute(text(statement))
