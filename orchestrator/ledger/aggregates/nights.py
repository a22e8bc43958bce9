"""Read nights and schedules, without a night's body where it is not asked for."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, select

from orchestrator.ledger.packed import unpack
from orchestrator.ledger.tables import NIGHTS, SCHEDULES


class NightKey(NamedTuple):
    """A night, and how often it was replaced."""

    suite: str
    night_id: str
    version: int
    due_at: float
    over: bool


def keys(connection: Connection) -> list[NightKey]:
    """Return all nights in the order in which they were due."""
    columns = select(NIGHTS.c.suite, NIGHTS.c.id, NIGHTS.c.version, NIGHTS.c.due_at, NIGHTS.c.over)
    return [NightKey(*row) for row in connection.execute(columns.order_by(NIGHTS.c.due_at))]


def body(connection: Connection, night_id: str) -> bytes:
    """Return the JSON of a night."""
    return unpack(connection.execute(select(NIGHTS.c.body).where(NIGHTS.c.id == night_id)).scalar_one())


def schedules(connection: Connection) -> list[tuple[str, str, float]]:
    """Return the suite of each schedule, when it is due, and since when it runs by itself (Unix time)."""
    return [(*row,) for row in connection.execute(select(SCHEDULES.c.suite, SCHEDULES.c.cron, SCHEDULES.c.since))]
