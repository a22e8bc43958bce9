"""Write experiments that are over into a Parquet file, read it again, and note its hash in the ledger."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from sqlalchemy import Connection, func, insert, select

from orchestrator.figures import BlockFigures
from orchestrator.ledger.database import Database
from orchestrator.ledger.experiments import one
from orchestrator.ledger.figures.packing import unpacked
from orchestrator.ledger.packed import unpack
from orchestrator.ledger.queries import counts
from orchestrator.ledger.rows import OPEN, AnyRow
from orchestrator.ledger.tables import (
    ARCHIVES,
    ATTEMPTS,
    CHOICES,
    EXPERIMENTS,
    FIGURES,
    JOBS,
    LANES,
    RECORDS,
    TEMPLATES,
)
from orchestrator.ledger.templates import JobReader
from orchestrator.ledger.upkeep import written_whole
from orchestrator.model.errors import NoData, SetupError

from .columns import FORMAT, SCHEMA, of_figures, of_job
from .reading import keys_of, sha256_of

BATCH = 500
METADATA_KEY = b"pocketfarm"
JOB_COLUMNS = (
    "sequence",
    "block",
    "priority",
    "state",
    "outcome",
    "cause",
    "attempts",
    "failures",
    "token",
    "ended_at",
)
BODIES = ("body", "per_layer", "predictions", "brief")


@dataclass(frozen=True)
class Archived:
    """A file that was read again after it was written."""

    file: Path
    size: int
    """Bytes."""
    sha256: str
    experiments: tuple[str, ...]
    records: int


def over_since(connection: Connection, older_than_s: float = 0.0) -> list[str]:
    """Experiments of which every job has been over for so long, in order of submission."""
    last = func.max(func.coalesce(JOBS.c.ended_at, EXPERIMENTS.c.submitted_at, 0.0))
    ended = select(EXPERIMENTS.c.id).join(JOBS, JOBS.c.experiment == EXPERIMENTS.c.sequence)
    old = ended.group_by(EXPERIMENTS.c.id, EXPERIMENTS.c.sequence).having(last <= time.time() - older_than_s)
    open_ = {name for name, words in counts(connection, None).items() if set(words) & set(OPEN)}
    return [name for name in connection.scalars(old.order_by(EXPERIMENTS.c.sequence)) if name not in open_]


def archive(
    database: Database, file: Path, experiments: Sequence[str], written_rows: Callable[[int], None]
) -> Archived:
    """Write these experiments. `written_rows`: is told how many rows are written.

    Raises SetupError where the file is there or cannot be written, NoData where an experiment is not over.
    """
    if file.exists():
        raise SetupError(f"{file} is there already", remedy="give another name: an archive is never replaced")
    with database.read() as connection:
        if still := set(experiments) - set(over_since(connection)):
            raise NoData(f"{', '.join(sorted(still))}: not over yet", remedy="wait, or `farm cancel` what is open")
        head = {"format": FORMAT, "experiments": [head_of(connection, name) for name in experiments]}
    written = dict[tuple[str, int], str]()
    schema = SCHEMA.with_metadata({METADATA_KEY: json.dumps(head).encode()})
    rows = 0
    with written_whole(file) as partial:
        with parquet.ParquetWriter(partial, schema, compression="zstd") as writer:
            for name in experiments:
                for part in parts_of(database, name):
                    writer.write_table(pa.Table.from_pylist(part, schema=schema))
                    written |= {(r["job_id"], r["attempt"]): r["record_sha256"] for r in part if r["record_sha256"]}
                    rows += len(part)
                    written_rows(rows)
        if dict(keys_of(partial)) != written:
            raise SetupError(f"{file}: what was written cannot be read again", remedy="check the disk, and try again")
        digest, size = sha256_of(partial), partial.stat().st_size
    made = {"sha256": digest, "file": str(file.absolute()), "made_at": time.time()}
    with database.write() as connection:
        connection.execute(insert(ARCHIVES).values(**made))
    return Archived(file, size, digest, tuple(experiments), len(written))


def head_of(connection: Connection, name: str) -> dict[str, Any]:
    """Return the row of an experiment, with its templates by their hash. Raises UnknownName, Unreadable."""
    one(connection, name)  # can be read
    row = connection.execute(select(EXPERIMENTS).where(EXPERIMENTS.c.id == name)).one()
    templates = select(TEMPLATES).where(TEMPLATES.c.experiment == row.sequence)
    bodies = {
        each.digest: {"cell_id": each.cell_id, "label": each.label, "body": unpack(each.body).decode()}
        for each in connection.execute(templates)
    }
    return {**row._mapping, "templates": bodies}


def parts_of(database: Database, name: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of an archive that an experiment has, in order of its jobs, `BATCH` jobs at a time."""
    last = -1
    while True:
        with database.read() as connection:
            jobs = (
                select(JOBS, TEMPLATES.c.digest, CHOICES.c.candidates)
                .join(EXPERIMENTS, EXPERIMENTS.c.sequence == JOBS.c.experiment)
                .join(TEMPLATES, TEMPLATES.c.id == JOBS.c.template_id)
                .join(LANES, LANES.c.id == JOBS.c.lane_id)
                .join(CHOICES, CHOICES.c.id == LANES.c.choice_id)
                .where(EXPERIMENTS.c.id == name, JOBS.c.sequence > last)
            )
            found = connection.execute(jobs.order_by(JOBS.c.sequence).limit(BATCH)).all()
            if not found:
                return
            yield list(_rows(connection, one(connection, name).experiment.name, found))
            last = found[-1].sequence


def _rows(connection: Connection, name: str, jobs: Sequence[AnyRow]) -> Iterator[dict[str, Any]]:
    ids = [job.id for job in jobs]
    tried: dict[str, list[AnyRow]] = {}
    for row in connection.execute(select(ATTEMPTS).where(ATTEMPTS.c.job_id.in_(ids)).order_by(ATTEMPTS.c.attempt)):
        tried.setdefault(row.job_id, []).append(row)
    records = {(r.job_id, r.attempt): r for r in connection.execute(select(RECORDS).where(RECORDS.c.job_id.in_(ids)))}
    figures = {(r.job_id, r.attempt): r for r in connection.execute(select(FIGURES).where(FIGURES.c.job_id.in_(ids)))}
    reader = JobReader(connection, jobs)
    empty = dict.fromkeys(SCHEMA.names)
    for job in jobs:
        own = {name: job._mapping[name] for name in (*JOB_COLUMNS, "ended_at")}
        blank: dict[str, Any] = empty | of_job(reader.read(job), name, job.state)
        blank["job_row"] = json.dumps({**own, "template": job.digest, "candidates": job.candidates})
        for attempt in tried.get(job.id, ()):
            key = (job.id, attempt.attempt)
            yield blank | _attempt(attempt) | _figures(figures.get(key)) | _record(records.get(key))
        if job.id not in tried:
            yield blank


def _attempt(row: AnyRow) -> dict[str, Any]:
    columns = {name: value for name, value in row._mapping.items() if name not in ("job_id", "changed")}
    flat = {"attempt": row.attempt, "serial": row.serial, "host": row.host, "outcome": row.outcome, "cause": row.cause}
    times = {"started_at_s": row.started_at, "ended_at_s": row.ended_at}
    return {**flat, **times, "attempt_row": json.dumps(columns)}


def _figures(row: AnyRow | None) -> dict[str, Any]:
    if row is None:
        return {}
    own = {name: value for name, value in row._mapping.items() if name not in ("job_id", *BODIES)}
    made: dict[str, Any] = {"figures_row": json.dumps(own), "source": row.source}
    if row.body is not None:
        block: BlockFigures = unpacked(row)
        made |= {"figures": block.model_dump_json(exclude_defaults=True), **of_figures(block)}
    return made


def _record(row: AnyRow | None) -> dict[str, Any]:
    """Return a record's columns; where its body is in another archive, this one has its figures alone."""
    if row is None or not row.body:
        return {}
    text = unpack(row.body)
    return {"record": text.decode(), "record_sha256": hashlib.sha256(text).hexdigest()}
