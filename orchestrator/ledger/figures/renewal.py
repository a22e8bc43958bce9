"""Make rows of figures anew from the records: those that are missing or of another version, or all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, select

from orchestrator.figures import FIGURES_VERSION
from orchestrator.ledger import records
from orchestrator.ledger.queries import measured_by
from orchestrator.ledger.tables import FIGURES, RECORDS

from .intake import PARTS, columns, put
from .selector import Selector, matching

BATCH = 100

Key = tuple[str, int]
"""Job and attempt."""


class Renewed(NamedTuple):
    """The outcome of renewing some rows."""

    looked_at: int = 0
    changed: int = 0
    """Rows that are new, or differ from what was there."""
    faulty: int = 0
    """Records of which no figures could be made; they are kept as they are."""

    def plus(self, other: Renewed) -> Renewed:
        return Renewed(*(mine + more for mine, more in zip(self, other, strict=True)))


def keys(connection: Connection, of: Selector) -> list[Key]:
    """Return the keys of these records."""
    return _keys(
        connection, select(RECORDS.c.job_id, RECORDS.c.attempt).where(matching(RECORDS, of), records.IN_LEDGER)
    )


def lacking(connection: Connection, of: Selector, *, faulty: bool = False) -> list[Key]:
    """Return keys of these records without a row of this version; with `faulty` also of rows that are errors."""
    same = and_(FIGURES.c.job_id == RECORDS.c.job_id, FIGURES.c.attempt == RECORDS.c.attempt)
    current = and_(same, FIGURES.c.version == FIGURES_VERSION, *([FIGURES.c.error == ""] if faulty else []))
    statement = select(RECORDS.c.job_id, RECORDS.c.attempt).outerjoin(FIGURES, current)
    return _keys(connection, statement.where(matching(RECORDS, of), records.IN_LEDGER, FIGURES.c.job_id.is_(None)))


def _keys(connection: Connection, statement: Any) -> list[Key]:
    return [(row.job_id, row.attempt) for row in connection.execute(statement)]


def renew(connection: Connection, wanted: Sequence[Key]) -> Renewed:
    """Make the rows of these records anew. A record that cannot be read keeps the row that it has, and no error takes
    the place of figures of this version."""
    jobs = measured_by(connection, [job_id for job_id, _ in wanted])
    before = _rows(connection, [job_id for job_id, _ in wanted])
    changed = faulty = 0
    for record in records.unpacked(records.packed(connection, wanted)):
        made = columns(record, jobs.get(record.job_id))
        faulty += bool(made["error"])
        known = before.get((record.job_id, record.attempt))
        if _content(made) != known and not (made["error"] and known and known[:2] == (FIGURES_VERSION, "")):
            put(connection, [made])
            changed += 1
    return Renewed(len(wanted), changed, faulty)


def _rows(connection: Connection, job_ids: Sequence[str]) -> dict[Key, tuple[Any, ...]]:
    rows = connection.execute(select(FIGURES).where(FIGURES.c.job_id.in_(job_ids)))
    return {(row.job_id, row.attempt): _content(row._mapping) for row in rows}


def _content(row: Any) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("version", "error", *PARTS))
