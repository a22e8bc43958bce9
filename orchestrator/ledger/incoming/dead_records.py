"""Set aside what was sent as a record and can never be stored: kept as it came, until it is replayed or dropped."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, delete, func, insert, select

from orchestrator.ledger.database import Database
from orchestrator.ledger.rows import DeadRecord, KeepResult
from orchestrator.ledger.tables import ATTEMPTS, DEAD_RECORDS
from orchestrator.model.errors import UnknownName
from orchestrator.model.live.lease import LARGEST_TOKEN

HOST_BYTES = 1 << 30
"""The most bytes of one host that are kept here: what more it sends waits in its stream, then on its own disk."""


class Crowded(Exception):
    """There is no room for more of a host's dead records, until some are replayed or dropped."""


_COLUMNS = (
    *(DEAD_RECORDS.c[name] for name in ("id", "name", "reason", "host", "set_aside_at")),
    func.length(DEAD_RECORDS.c.body).label("size"),
)


class DeadRecords:
    """The dead records of a ledger. Every method raises ServiceDown where the database is away."""

    def __init__(
        self,
        database: Database,
        offer: Callable[[bytes, str | None], KeepResult],
        fail: Callable[[Connection, str, int], None],
    ) -> None:
        """`offer`: keeps a record as a host sent it; `fail`: ends an attempt whose record can never be stored."""
        self._database, self._offer, self._fail = database, offer, fail

    def set_aside(self, body: bytes, reason: str, *, host: str = "", name: str = "") -> str:
        """Keep what can never be stored, as it came; its id.

        The attempt that it says it is of ends as failed, where that host has it: another one's record would not be
        stored either. A replay after an update puts that right. Raises Crowded, and keeps nothing.
        """
        with self._database.write() as connection:
            dead_id = _add(connection, body, reason, host, name)
            if (key := _attempt_under_way(connection, body, host)) is not None:
                self._fail(connection, *key)
        return dead_id

    def every(self) -> list[DeadRecord]:
        """Return what was set aside, the oldest first."""
        with self._database.read() as connection:
            return _every(connection)

    def body(self, dead_id: str) -> bytes:
        """A dead record as it came. Raises UnknownName."""
        with self._database.read() as connection:
            return _body_of(connection, dead_id)

    def replay(self, dead_id: str) -> KeepResult:
        """Take a dead record in again; it is dead no more where the ledger then has it.

        Raises UnknownName, and Unstorable where it still cannot be stored.
        """
        body = self.body(dead_id)
        host = next((each.host for each in self.every() if each.id == dead_id), None) or None
        result = self._offer(body, host)
        if result is not KeepResult.STALE:
            self.drop([dead_id])
        return result

    def drop(self, dead_ids: Sequence[str]) -> None:
        """Delete dead records for good, all or none. Raises UnknownName."""
        with self._database.write() as connection:
            _drop(connection, dead_ids)


def _add(connection: Connection, body: bytes, reason: str, host: str, name: str) -> str:
    """Keep these bytes; their id. The same bytes are kept once."""
    dead_id = hashlib.sha256(body).hexdigest()[:16]
    if connection.execute(select(DEAD_RECORDS.c.id).where(DEAD_RECORDS.c.id == dead_id)).first() is None:
        words = {"reason": _text(reason, 2000), "host": _text(host, 200), "name": _text(name, 200)}
        mine = func.coalesce(func.sum(func.length(DEAD_RECORDS.c.body)), 0)
        there = int(connection.execute(select(mine).where(DEAD_RECORDS.c.host == words["host"])).scalar_one())
        if host and there + len(body) > HOST_BYTES:
            told = f"{there} bytes of host {host} are set aside, and {HOST_BYTES} may be"
            raise Crowded(f"{told}: its records wait until `farm records` has replayed or dropped some")
        row = {"id": dead_id, "body": body, "set_aside_at": time.time(), **words}
        connection.execute(insert(DEAD_RECORDS).values(**row))
    return dead_id


def _attempt_under_way(connection: Connection, body: bytes, host: str) -> tuple[str, int] | None:
    """The job and attempt that these bytes say they are of, where that host (empty: any) has it under way."""
    try:
        said = json.loads(body)
        key = (str(said["job_id"]), int(said["attempt"]), int(said["token"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not (0 < key[1] < 2**31 and 0 < key[2] < LARGEST_TOKEN):
        return None
    attempt = ATTEMPTS.c
    mine = (attempt.job_id == key[0].replace("\0", "")) & (attempt.attempt == key[1]) & (attempt.token == key[2])
    if host:
        mine &= attempt.host == host
    found = connection.execute(select(attempt.job_id, attempt.attempt).where(mine, attempt.ended_at.is_(None))).first()
    return (found.job_id, found.attempt) if found is not None else None


def _every(connection: Connection) -> list[DeadRecord]:
    """The oldest first."""
    order = (DEAD_RECORDS.c.set_aside_at, DEAD_RECORDS.c.id)
    return [DeadRecord(**row._mapping) for row in connection.execute(select(*_COLUMNS).order_by(*order))]


def _body_of(connection: Connection, dead_id: str) -> bytes:
    """The bytes as they came. Raises UnknownName."""
    body = connection.scalar(select(DEAD_RECORDS.c.body).where(DEAD_RECORDS.c.id == dead_id))
    if body is None:
        raise UnknownName(f"no dead record has the id {dead_id!r}", remedy="`farm records` lists them")
    return bytes(body)


def _drop(connection: Connection, dead_ids: Sequence[str]) -> None:
    """Delete them for good. Raises UnknownName, and deletes none, where one is not there."""
    for dead_id in dead_ids:
        _body_of(connection, dead_id)
    connection.execute(delete(DEAD_RECORDS).where(DEAD_RECORDS.c.id.in_(dead_ids)))


def _text(value: str, limit: int) -> str:
    """Return a text that a column can hold: PostgreSQL's text has no NUL."""
    return value.replace("\0", "?").encode(errors="replace").decode()[:limit]
