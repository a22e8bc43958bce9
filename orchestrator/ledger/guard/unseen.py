"""End open jobs of which a row cannot be read: every question leaves them out, and so no turn would ever see them."""

from __future__ import annotations

import time

from sqlalchemy import ColumnElement, Connection, Table, or_, select, update

from orchestrator.ledger.database import count_up, parts
from orchestrator.ledger.queue import changes
from orchestrator.ledger.rows import JobState
from orchestrator.ledger.tables import ATTEMPTS, CHOICES, EXPERIMENTS, JOBS, LANES, TEMPLATES
from orchestrator.model.errors import Unreadable
from orchestrator.model.record import Outcome

from .column_types import unreadable

_OVER = (JobState.DONE, JobState.CANCELLED)
_UNDER_WAY = (JobState.PLACED, JobState.RUNNING)


def unseen(connection: Connection) -> list[str]:
    """Return the ids of such jobs."""
    return list(connection.scalars(select(JOBS.c.id).where(_unseen(connection.dialect.name))))


def end(connection: Connection, job_ids: list[str]) -> None:
    """End those of these jobs that nobody sees, and the attempts at them; counters that cannot be read go on."""
    for name in ("token", "experiment", changes.NUMBER):
        count_up(connection, name, 0)
    over = {"outcome": Outcome.FAILED, "cause": Unreadable.cause, "ended_at": time.time()}
    for part in parts(job_ids):
        mine = JOBS.c.id.in_(part) & _unseen(connection.dialect.name)
        ended = list(
            connection.scalars(update(JOBS).where(mine).values(state=JobState.DONE, **over).returning(JOBS.c.id))
        )
        own = ATTEMPTS.c.job_id.in_(ended) & (ATTEMPTS.c.ended_at.is_(None))
        changes.note_attempts(connection, own)
        connection.execute(update(ATTEMPTS).where(own).values(**over))
        changes.note_lanes(connection, set(connection.scalars(select(JOBS.c.lane_id).where(JOBS.c.id.in_(ended)))))


def _unseen(dialect: str) -> ColumnElement[bool]:
    def lacks(*tables: Table, where: ColumnElement[bool]) -> ColumnElement[bool]:
        sound = (~unreadable(table, dialect) for table in tables)
        return ~select(1).select_from(*tables).where(where, *sound).correlate(JOBS).exists()

    lane = (LANES.c.id == JOBS.c.lane_id) & (LANES.c.experiment == JOBS.c.experiment)
    under_way = (ATTEMPTS.c.job_id == JOBS.c.id) & ATTEMPTS.c.ended_at.is_(None)
    return JOBS.c.state.not_in(_OVER) & or_(
        unreadable(JOBS, dialect),
        lacks(EXPERIMENTS, where=EXPERIMENTS.c.sequence == JOBS.c.experiment),
        lacks(TEMPLATES, where=TEMPLATES.c.id == JOBS.c.template_id),
        lacks(LANES, CHOICES, where=lane & (CHOICES.c.id == LANES.c.choice_id)),
        JOBS.c.state.in_(_UNDER_WAY) & lacks(ATTEMPTS, where=under_way),
    )
