"""Follow the records that went well by their keys."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, func, or_, select

from orchestrator.ledger.guard.column_types import unreadable
from orchestrator.ledger.tables import EXPERIMENTS, RECORDS
from orchestrator.model.record import Outcome


class GoodRecord(NamedTuple):
    """The keys of a record that went well."""

    job_id: str
    attempt: int
    kept_at: float
    experiment_id: str
    serial: str
    cell_id: str
    source: str


def newest_experiment(connection: Connection) -> int:
    """Return the number of the newest experiment; 0: there is none."""
    known = ~unreadable(EXPERIMENTS, connection.dialect.name, ("sequence",))
    return connection.scalar(select(func.max(EXPERIMENTS.c.sequence)).where(known)) or 0


def good_since(connection: Connection, kept_at: float, after: int | None, most: int) -> list[GoodRecord]:
    """Return the records that were kept since then, or are of an experiment after this number; the newest first."""
    wanted = [RECORDS.c.kept_at >= kept_at]
    if after is not None:  # an import: all of it is there now
        wanted.append(RECORDS.c.experiment_id.in_(select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.sequence > after)))
    keys = (RECORDS.c.experiment_id, RECORDS.c.serial, RECORDS.c.cell_id, RECORDS.c.source)
    fresh = (
        select(RECORDS.c.job_id, RECORDS.c.attempt, RECORDS.c.kept_at, *keys)
        .join(EXPERIMENTS, EXPERIMENTS.c.id == RECORDS.c.experiment_id)
        .where(RECORDS.c.outcome == Outcome.OK.value, or_(*wanted))
        .order_by(RECORDS.c.kept_at.desc())
        .limit(most)
    )
    return [GoodRecord(*row) for row in connection.execute(fresh)]


def spec_of(connection: Connection, experiment_id: str) -> str:
    """Return the stored specification of an experiment; empty where there is none."""
    return connection.scalar(select(EXPERIMENTS.c.spec).where(EXPERIMENTS.c.id == experiment_id)) or ""
