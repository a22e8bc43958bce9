"""Rows that belong together: each relation is one statement, and so sees one moment of a ledger at work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Select, and_, exists, func, or_, select

from orchestrator.ledger.rows import JobState
from orchestrator.ledger.tables import ATTEMPTS, COUNTERS, EXPERIMENTS, FIGURES, JOBS, LANES, RECORDS, TEMPLATES
from orchestrator.model.record import Outcome

from .fault import PUT_BACK, Fault

AGAIN = "measure it again: submit its experiment under another name; or " + PUT_BACK
MEASURED = (Outcome.OK, Outcome.INVALID, Outcome.KILLED)
"""Outcomes that only a record can have brought."""
UNDER_WAY = (JobState.PLACED, JobState.RUNNING)


@dataclass(frozen=True)
class Relation:
    """Rows that `wrong` selects, by their keys, are at fault."""

    table: str
    wrong: Select[Any]
    what: str
    remedy: str = PUT_BACK
    harmless: bool = False


def faults(relation: Relation, connection: Connection) -> Iterator[Fault]:
    for row in connection.execute(relation.wrong):
        name = " ".join(str(value) for value in row)
        yield Fault(relation.table, name, relation.what, relation.remedy, relation.harmless)


def _no(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return ~exists().where(condition)


def _is_attempt(*key: Column[Any]) -> ColumnElement[bool]:
    """`key`: of a job, the number of an attempt, its token."""
    return and_(*(mine == theirs for mine, theirs in zip(_ATTEMPT, key, strict=True)))


def _counter(name: str) -> Any:
    return select(func.coalesce(func.max(COUNTERS.c.value), -1)).where(COUNTERS.c.name == name).scalar_subquery()


_OF_JOB = RECORDS.c.job_id == JOBS.c.id
_OPEN = ATTEMPTS.c.ended_at.is_(None)
_RECORD_KEY = (RECORDS.c.job_id, RECORDS.c.attempt)
_ATTEMPT_KEY = (ATTEMPTS.c.job_id, ATTEMPTS.c.attempt)
_ATTEMPT = (*_ATTEMPT_KEY, ATTEMPTS.c.token)

RELATIONS = (
    Relation(
        "jobs",
        select(JOBS.c.id).where(
            JOBS.c.state == JobState.DONE,
            JOBS.c.outcome.in_(MEASURED),
            _no(and_(_OF_JOB, RECORDS.c.token == JOBS.c.token, RECORDS.c.outcome == JOBS.c.outcome)),
        ),
        "is over, and has no record of its newest attempt with its outcome",
        AGAIN,
    ),
    Relation(
        "jobs",
        select(JOBS.c.id).where((JOBS.c.state == JobState.DONE) != (JOBS.c.outcome != "")),
        "is over without an outcome, or has one and is not over",
    ),
    Relation(
        "jobs",
        select(JOBS.c.id).where(
            JOBS.c.attempts > 0,
            _no(_is_attempt(JOBS.c.id, JOBS.c.attempts, JOBS.c.token)),
        ),
        "its newest attempt, or that attempt's token, is not among the attempts",
    ),
    Relation(
        "jobs",
        select(JOBS.c.id).where(JOBS.c.state.in_(UNDER_WAY), _no(and_(ATTEMPTS.c.job_id == JOBS.c.id, _OPEN))),
        "is under way without an attempt that has not ended",
    ),
    Relation(
        "jobs",
        select(JOBS.c.id)
        .join(TEMPLATES, TEMPLATES.c.id == JOBS.c.template_id)
        .join(LANES, LANES.c.id == JOBS.c.lane_id)
        .where(or_(TEMPLATES.c.experiment != JOBS.c.experiment, LANES.c.experiment != JOBS.c.experiment)),
        "its template or its lane is another experiment's",
    ),
    Relation(
        "attempts",
        select(*_ATTEMPT_KEY)
        .join(JOBS, JOBS.c.id == ATTEMPTS.c.job_id)
        .where(_OPEN, JOBS.c.state.in_((JobState.HELD, JobState.WAITING, JobState.DONE))),
        "has not ended, but its job is not under way",
    ),
    Relation(
        "attempts",
        select(*_ATTEMPT_KEY).where(ATTEMPTS.c.token > _counter("token")),
        "its fencing token is larger than the newest one: tokens have gone back",
    ),
    Relation(
        "experiments",
        select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.sequence > _counter("experiment")),
        "its number is larger than the newest one: numbers have gone back",
    ),
    Relation(
        "records",
        select(*_RECORD_KEY).where(_no(_is_attempt(RECORDS.c.job_id, RECORDS.c.attempt, RECORDS.c.token))),
        "there is no attempt with its number and token",
    ),
    Relation(
        "records",
        select(*_RECORD_KEY)
        .join(JOBS, _OF_JOB)
        .join(EXPERIMENTS, EXPERIMENTS.c.sequence == JOBS.c.experiment)
        .where(EXPERIMENTS.c.id != RECORDS.c.experiment_id),
        "its experiment is not that of its job",
    ),
    Relation(
        "records",
        select(*_RECORD_KEY).where(
            _no(and_(FIGURES.c.job_id == RECORDS.c.job_id, FIGURES.c.attempt == RECORDS.c.attempt))
        ),
        "has no row of figures; it is made when it is asked for",
        "`farm ledger recompute`",
        harmless=True,
    ),
)
