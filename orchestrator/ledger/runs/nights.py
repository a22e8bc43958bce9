"""Keep the nights of suites, and which suites run by their schedule. One transaction a call.

A night is brought forward by whoever is there: it is replaced only by those who have read its newest version.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update

from orchestrator.ledger.database import Database
from orchestrator.ledger.packed import pack_json, read_row, readable_rows, unpack
from orchestrator.ledger.rows import AnyRow
from orchestrator.ledger.tables import NIGHTS, SCHEDULES
from orchestrator.model.errors import UnknownName


@dataclass(frozen=True)
class NightText:
    """A stored night; `body` is its JSON."""

    id: str
    suite: str
    due_at: float
    over: bool
    version: int
    body: bytes


@dataclass(frozen=True)
class Schedule:
    """A suite that the farm runs by itself."""

    suite: str
    file: str
    cron: str
    since: float
    """Unix time: nights that were due before it are nobody's."""
    body: bytes
    """JSON of the suite as it was then."""


class Nights:
    """Nights and schedules in the ledger. Every method raises ServiceDown where the database is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, night_id: str, suite: str, due_at: float, body: bytes, *, over: bool = False) -> bool:
        """Store a new night; False, and nothing is changed, where it is there already."""
        row = {"id": night_id, "suite": suite, "due_at": due_at, "over": over, "version": 1, "body": pack_json(body)}
        with self._database.write() as connection:
            if connection.execute(select(NIGHTS.c.id).where(NIGHTS.c.id == night_id)).first() is not None:
                return False
            connection.execute(insert(NIGHTS).values(**row))
        return True

    def save(self, night: NightText, body: bytes, *, over: bool) -> bool:
        """Replace a night as it was read; False, and nothing is changed, where somebody else has replaced it since."""
        mine = (NIGHTS.c.id == night.id) & (NIGHTS.c.version == night.version)
        new = {"version": night.version + 1, "body": pack_json(body), "over": over}
        with self._database.write() as connection:
            return connection.execute(update(NIGHTS).where(mine).values(**new)).rowcount > 0

    def one(self, night_id: str) -> NightText:
        """Raises UnknownName where there is none."""
        with self._database.read() as connection:
            row = connection.execute(select(NIGHTS).where(NIGHTS.c.id == night_id)).first()
        if row is None:
            raise UnknownName(f"there is no night {night_id!r}", remedy="`farm nightly list` shows them")
        return _night(row)

    def of(self, suite: str | None = None, *, over: bool | None = None, limit: int | None = None) -> list[NightText]:
        """Nights of one suite or all, that are over, under way or either; the newest first."""
        wanted = select(NIGHTS).order_by(NIGHTS.c.due_at.desc(), NIGHTS.c.id.desc()).limit(limit)
        if suite is not None:
            wanted = wanted.where(NIGHTS.c.suite == suite)
        if over is not None:
            wanted = wanted.where(NIGHTS.c.over.is_(over))
        with self._database.read() as connection:
            return readable_rows("night", connection.execute(wanted).all(), _night)

    def due_times(self, suite: str, limit: int) -> list[float]:
        """Return when a suite's newest nights were due (Unix time), the newest first; reads no night."""
        newest = select(NIGHTS.c.due_at).where(NIGHTS.c.suite == suite).order_by(NIGHTS.c.due_at.desc()).limit(limit)
        with self._database.read() as connection:
            return [float(due_at) for due_at in connection.scalars(newest)]

    def schedules(self) -> list[Schedule]:
        """Suites that run by themselves, by name."""
        with self._database.read() as connection:
            wanted = select(SCHEDULES, SCHEDULES.c.suite.label("id")).order_by(SCHEDULES.c.suite)
            return readable_rows("the schedule of suite", connection.execute(wanted).all(), _schedule)

    def schedule(self, suite: str, file: str, cron: str, body: bytes) -> None:
        """Let this suite run by itself from now on; what was said of it before is replaced."""
        row = {"suite": suite, "file": file, "cron": cron, "since": time.time(), "body": pack_json(body)}
        with self._database.write() as connection:
            connection.execute(delete(SCHEDULES).where(SCHEDULES.c.suite == suite))
            connection.execute(insert(SCHEDULES).values(**row))

    def unschedule(self, suite: str) -> bool:
        """End the suite's schedule; return whether it ran by itself."""
        with self._database.write() as connection:
            return connection.execute(delete(SCHEDULES).where(SCHEDULES.c.suite == suite)).rowcount > 0


def _schedule(row: AnyRow) -> Schedule:
    return Schedule(row.suite, row.file, row.cron, row.since, unpack(row.body))


def _night(row: AnyRow) -> NightText:
    body = read_row(f"night {row.id}", lambda: unpack(row.body))
    return NightText(row.id, row.suite, row.due_at, row.over, row.version, body)
