"""Make room: delete raw records that a verified archive holds, or whole experiments; their figures stay.

A record's row stays too, without its body: it says that the record is there once, and in which archive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, delete, func, select, update

from orchestrator.ledger.attempts import counted
from orchestrator.ledger.database import Database
from orchestrator.ledger.packed import unpack
from orchestrator.ledger.queue import changes
from orchestrator.ledger.tables import ARCHIVES, ATTEMPTS, EXPERIMENTS, FIGURES, JOBS, LANES, RECORDS, TEMPLATES

from .archive import over_since
from .reading import keys_of, sha256_of

BATCH = 500
Key = tuple[str, int]
"""Job and attempt."""


@dataclass(frozen=True)
class Plan:
    """The rows that would be deleted."""

    experiments: tuple[str, ...]
    """The experiments that are old enough."""
    bodies: dict[Key, int | None]
    """Raw records, each with the archive that holds it; None: none, and that was allowed."""
    size: int
    """Bytes of them in the ledger."""
    kept: int
    """Raw records that no archive holds."""
    whole: tuple[str, ...]
    """Experiments that go altogether."""
    unread: tuple[str, ...]
    """Archives that the ledger knows and that are not there, or are not as they were written."""


def plan(
    database: Database, *, experiments: Sequence[str], older_than_s: float, without_archive: bool, whole: bool
) -> Plan:
    """`experiments`: only these; empty: all. Reads the archives that the ledger knows."""
    with database.read() as connection:
        old = [name for name in over_since(connection, older_than_s) if not experiments or name in experiments]
        known = connection.execute(select(ARCHIVES).order_by(ARCHIVES.c.id)).all()
    held: dict[Key, tuple[int, str]] = {}
    unread = []
    for row in known:
        file = Path(row.file)
        if file.is_file() and sha256_of(file) == row.sha256:
            held |= {key: (row.id, digest) for key, digest in keys_of(file)}
        else:
            unread.append(row.file)
    bodies: dict[Key, int | None] = {}
    size, kept, complete = 0, 0, []
    for name in old:
        before = kept
        for key, digest, bytes_ in _records(database, name):
            archive, archived = held.get(key, (None, ""))
            if archived == digest or without_archive:
                bodies[key] = archive if archived == digest else None
                size += bytes_
            else:
                kept += 1
        if whole and kept == before:
            complete.append(name)
    return Plan(tuple(old), bodies, size, kept, tuple(complete), tuple(unread))


def _records(database: Database, name: str) -> Iterator[tuple[Key, str, int]]:
    """Raw records that the ledger has: key, hash of the JSON, bytes."""
    mine = (RECORDS.c.experiment_id == name) & (func.length(RECORDS.c.body) > 0)
    with database.read() as connection:
        keys = connection.execute(select(RECORDS.c.job_id, RECORDS.c.attempt).where(mine)).all()
    for start in range(0, len(keys), BATCH):
        part = {row.job_id for row in keys[start : start + BATCH]}
        with database.read() as connection:
            columns = select(RECORDS.c.job_id, RECORDS.c.attempt, RECORDS.c.body)
            rows = connection.execute(columns.where(RECORDS.c.job_id.in_(part), func.length(RECORDS.c.body) > 0)).all()
        for row in rows:
            yield (row.job_id, row.attempt), hashlib.sha256(unpack(row.body)).hexdigest(), len(row.body)


def prune(database: Database, wanted: Plan) -> Iterator[int]:
    """Do it, a batch a transaction; yields how many records are done."""
    keys = list(wanted.bodies)
    for start in range(0, len(keys), BATCH):
        with database.write() as connection:
            for key in keys[start : start + BATCH]:
                mine = (RECORDS.c.job_id == key[0]) & (RECORDS.c.attempt == key[1])
                connection.execute(update(RECORDS).where(mine).values(body=b"", archive_id=wanted.bodies[key]))
        yield min(start + BATCH, len(keys))
    for name in wanted.whole:
        with database.write() as connection:
            _delete(connection, name)


def _delete(connection: Connection, name: str) -> None:
    """Everything of an experiment, unless jobs of it were put back into the queue meanwhile."""
    if name not in over_since(connection):
        return
    number = connection.scalar(select(EXPERIMENTS.c.sequence).where(EXPERIMENTS.c.id == name))
    jobs = select(JOBS.c.id).where(JOBS.c.experiment == number)
    changes.note_lanes(connection, list(connection.scalars(select(LANES.c.id).where(LANES.c.experiment == number))))
    counted.leave(connection, connection.scalars(jobs))
    for table in (FIGURES, RECORDS, ATTEMPTS):
        connection.execute(delete(table).where(table.c.job_id.in_(jobs)))
    for table in (JOBS, TEMPLATES, LANES):
        connection.execute(delete(table).where(table.c.experiment == number))
    connection.execute(delete(EXPERIMENTS).where(EXPERIMENTS.c.sequence == number))
