"""Put records in the place of what they were, after their output was read again."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from sqlalchemy import Connection, update

from orchestrator.ledger import figures, records, templates
from orchestrator.ledger.database import count_up
from orchestrator.ledger.packed import pack_json, unpack
from orchestrator.ledger.queue import changes
from orchestrator.ledger.rows import JobState
from orchestrator.ledger.tables import ATTEMPTS, JOBS, RECORDS
from orchestrator.model.record import Record

from . import counted

Pair = tuple[Record, Record]
"""A record as it is kept, and as it is to be."""


def replace_all(connection: Connection, pairs: Sequence[Pair]) -> list[Record]:
    """Replace records, with their figures and the outcomes of their attempts and jobs; return those that are new.

    One that is no longer as it was read stays. What a newer version of the farm has put into one stays, too. Counters
    of attempts and records go on as they were, and no archive holds the new ones.
    """
    bodies = dict(records.packed(connection, [(old.job_id, old.attempt) for old, _ in pairs]))
    found = [new for old, new in pairs if _is(bodies.get((old.job_id, old.attempt)), old)]
    jobs = [new.job_id for new in found]
    measured = templates.measured_of(connection, jobs)
    counted.leave(connection, jobs)
    change = count_up(connection, changes.NUMBER) if found else 0
    for new in found:
        told = {"outcome": new.outcome, "cause": new.cause[:40]}
        body = {**json.loads(unpack(bodies[new.job_id, new.attempt])), **json.loads(new.model_dump_json())}
        packed = {"body": pack_json(json.dumps(body).encode()), "archive_id": None}
        for table, values in ((RECORDS, {**told, **packed}), (ATTEMPTS, {**told, "changed": change})):
            mine = (table.c.job_id == new.job_id) & (table.c.attempt == new.attempt)
            connection.execute(update(table).where(mine).values(values))
        newest = (JOBS.c.id == new.job_id) & (JOBS.c.token == new.token) & (JOBS.c.state == JobState.DONE)
        connection.execute(update(JOBS).where(newest).values(told))
    figures.put(connection, [figures.columns(new, measured.get(new.job_id)) for new in found])
    counted.come(connection, jobs)
    return found


def _is(body: bytes | None, record: Record) -> bool:
    try:
        return body is not None and records.stored(body) == record
    except (ValueError, zlib.error):
        return False
