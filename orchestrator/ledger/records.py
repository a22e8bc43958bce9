"""Read records: those that are sent, and stored ones in batches, unpacking one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import partial

from pydantic import ValidationError
from sqlalchemy import Connection, func, select

from orchestrator.model import problem
from orchestrator.model.errors import UnknownName, Unstorable
from orchestrator.model.record import Record

from .database import padded
from .packed import readable, unpack
from .tables import RECORDS

BATCH = 200
SHOWN = 8

Key = tuple[str, int]
"""Job and attempt."""

IN_LEDGER = func.length(RECORDS.c.body) > 0
"""The condition that a record was not pruned; neither database reads the body for it."""


def keys(
    connection: Connection, experiment_id: str, outcomes: Iterable[str] | None = None, serial: str | None = None
) -> list[Key]:
    """Return the keys of an experiment's records, in order of their start."""
    mine = (RECORDS.c.experiment_id == experiment_id) & IN_LEDGER
    statement = select(RECORDS.c.job_id, RECORDS.c.attempt).where(mine)
    if outcomes is not None:
        statement = statement.where(RECORDS.c.outcome.in_([str(outcome) for outcome in outcomes]))
    if serial is not None:
        statement = statement.where(RECORDS.c.serial == serial)
    order = (RECORDS.c.started_at, RECORDS.c.job_id, RECORDS.c.attempt)
    return [(row.job_id, row.attempt) for row in connection.execute(statement.order_by(*order))]


def known(connection: Connection, serial: str) -> str:
    """A device that has records, or had. Raises UnknownName, naming close ones."""
    there = list(connection.scalars(select(RECORDS.c.serial).distinct().order_by(RECORDS.c.serial)))
    if serial in there:
        return serial
    near = get_close_matches(serial, there, n=SHOWN) or there
    more = f" and {len(near) - SHOWN} more" if len(near) > SHOWN else ""
    hint = f"devices that have some: {', '.join(near[:SHOWN])}{more}" if near else "the ledger holds no record yet"
    raise UnknownName(f"there is no record of a device {serial!r}", remedy=hint)


def begun_between(connection: Connection, since: float, until: float, serial: str | None = None) -> list[Key]:
    """Return the keys of all experiments' records that began in this time, in order of their start."""
    mine = RECORDS.c.started_at.between(since, until) & IN_LEDGER
    if serial is not None:
        mine &= RECORDS.c.serial == serial
    order = (RECORDS.c.started_at, RECORDS.c.job_id, RECORDS.c.attempt)
    statement = select(RECORDS.c.job_id, RECORDS.c.attempt).where(mine).order_by(*order)
    return [(row.job_id, row.attempt) for row in connection.execute(statement)]


def packed(connection: Connection, wanted: Sequence[Key]) -> list[tuple[Key, bytes]]:
    """Return packed records in the order of the keys, each with its key."""
    statement = select(RECORDS.c.job_id, RECORDS.c.attempt, RECORDS.c.body)
    rows = connection.execute(statement.where(RECORDS.c.job_id.in_(padded({job_id for job_id, _ in wanted}))))
    bodies = {(row.job_id, row.attempt): row.body for row in rows}
    return [(key, body) for key in wanted if (body := bodies.get(key))]


def packed_of(connection: Connection, job_ids: Sequence[str]) -> list[tuple[Key, bytes]]:
    """Return the packed records of every attempt at these jobs, each with its key."""
    statement = select(RECORDS.c.job_id, RECORDS.c.attempt, RECORDS.c.body).where(
        RECORDS.c.job_id.in_(padded(job_ids)), IN_LEDGER
    )
    return [((row.job_id, row.attempt), row.body) for row in connection.execute(statement)]


def unpacked(found: Iterable[tuple[Key, bytes]]) -> Iterator[Record]:
    """One after the other; what cannot be read is logged and skipped."""
    for (job_id, attempt), body in found:
        record = readable(f"the record of attempt {attempt} at job {job_id}", partial(stored, body))
        if record is not None:
            yield record


def batches(job_ids: Iterable[str]) -> list[list[str]]:
    """The same jobs in order, as many at a time as are read at once."""
    wanted = sorted(job_ids)
    return [wanted[start : start + BATCH] for start in range(0, len(wanted), BATCH)]


def stored(body: bytes) -> Record:
    """A record of this version or of a newer one, from its column. Raises ValueError, zlib.error."""
    return Record.model_validate_json(unpack(body), extra="ignore")


def parsed(text: bytes) -> Record:
    """A record of this version or of a newer one, whose further fields are ignored. Raises Unstorable."""
    try:
        return Record.model_validate_json(text, extra="ignore")
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise Unstorable(
            f"it is no record of this version: {where}: {problem.describe(first)}",
            remedy="update pocketfarm here, then `farm records replay`",
        ) from e
