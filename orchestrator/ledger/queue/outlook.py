"""The work that an experiment still has, and how long its blocks took so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from orchestrator.ledger.queue.lanes import devices_of
from orchestrator.ledger.queue.tallies import having, tallies
from orchestrator.ledger.rows import JobState
from orchestrator.ledger.tables import ATTEMPTS, EXPERIMENTS, JOBS, TEMPLATES, number_of
from orchestrator.model.record import Outcome

NEWEST = 10_000
"""Attempts of which the durations are read: the newest ones."""


@dataclass(frozen=True)
class Work:
    """Blocks of a cell that wait for one of these devices."""

    candidates: tuple[str, ...]
    cell_id: str
    blocks: int


@dataclass(frozen=True)
class UnderWay:
    """An attempt of the farm that has not ended."""

    serial: str
    cell_id: str
    is_own: bool
    """True if it is of the experiment itself."""
    started_at: float
    """Unix time."""


@dataclass(frozen=True)
class Outlook:
    """The outlook of one experiment that is not over."""

    took_s: Mapping[tuple[str, str], tuple[float, ...]]
    """(Cell, serial) -> durations of attempts that measured, from their beginning to the end of their record: of this
    experiment, and of others with the same file."""
    work: tuple[Work, ...]
    under_way: tuple[UnderWay, ...]
    rivals: Mapping[str, int]
    """Serial -> other experiments, of no lower priority, with blocks that wait for it."""
    held: int
    """Blocks that sequential sampling may add."""


def outlook(connection: Connection, experiment_id: str) -> Outlook:
    """Return what an experiment still has to do, and how long its blocks took so far. Costs a look at its own jobs, and
    one at the lanes in which others wait."""
    states = select(JOBS.c.state, func.count()).where(JOBS.c.experiment == number_of(experiment_id))
    counts = {state: int(count) for state, count in connection.execute(states.group_by(JOBS.c.state))}
    return Outlook(
        took_s=_took(connection, experiment_id),
        work=_work(connection, experiment_id),
        under_way=_under_way(connection, experiment_id),
        rivals=_rivals(connection, experiment_id),
        held=counts.get(JobState.HELD, 0),
    )


def _took(connection: Connection, experiment_id: str) -> dict[tuple[str, str], tuple[float, ...]]:
    spec = select(EXPERIMENTS.c.spec).where(EXPERIMENTS.c.id == experiment_id).scalar_subquery()
    alike = select(EXPERIMENTS.c.sequence).where(EXPERIMENTS.c.spec == spec)
    lasted = (ATTEMPTS.c.ended_at - ATTEMPTS.c.started_at).label("lasted")
    of_job = ATTEMPTS.join(JOBS, JOBS.c.id == ATTEMPTS.c.job_id).join(TEMPLATES, TEMPLATES.c.id == JOBS.c.template_id)
    measured = ATTEMPTS.c.ended_at.is_not(None) & ATTEMPTS.c.outcome.not_in((Outcome.LOST, Outcome.CANCELLED))
    found = select(TEMPLATES.c.cell_id, ATTEMPTS.c.serial, lasted).select_from(of_job)
    newest = found.where(JOBS.c.experiment.in_(alike), measured).order_by(ATTEMPTS.c.token.desc()).limit(NEWEST)
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    for cell_id, serial, lasted_s in connection.execute(newest):
        took[cell_id, serial].append(max(0.0, float(lasted_s)))
    return {key: tuple(durations) for key, durations in took.items()}


def _work(connection: Connection, experiment_id: str) -> tuple[Work, ...]:
    mine = (JOBS.c.experiment == number_of(experiment_id)) & (JOBS.c.state == JobState.WAITING)
    key = (JOBS.c.lane_id, TEMPLATES.c.cell_id)
    counted = select(*key, func.count()).join(TEMPLATES, TEMPLATES.c.id == JOBS.c.template_id)
    rows = connection.execute(counted.where(mine).group_by(*key).order_by(func.min(JOBS.c.sequence))).all()
    devices = devices_of(connection, {lane for lane, _, _ in rows})
    return tuple(Work(devices[lane], cell_id, blocks) for lane, cell_id, blocks in rows)


def _under_way(connection: Connection, experiment_id: str) -> tuple[UnderWay, ...]:
    own = (JOBS.c.experiment == number_of(experiment_id)).label("own")
    of_job = ATTEMPTS.join(JOBS, JOBS.c.id == ATTEMPTS.c.job_id).join(TEMPLATES, TEMPLATES.c.id == JOBS.c.template_id)
    found = select(ATTEMPTS.c.serial, TEMPLATES.c.cell_id, own, ATTEMPTS.c.started_at).select_from(of_job)
    rows = connection.execute(found.where(ATTEMPTS.c.ended_at.is_(None))).all()
    return tuple(UnderWay(row.serial, row.cell_id, bool(row.own), row.started_at) for row in rows)


def _rivals(connection: Connection, experiment_id: str) -> dict[str, int]:
    number = connection.scalar(select(number_of(experiment_id)))
    if number is None:
        return {}
    own = max((each.priority for each in tallies(connection, [number])), default=0)
    others = [each for each in having(connection, JobState.WAITING) if each != number]
    waits = [t for t in tallies(connection, others) if t.state is JobState.WAITING and t.priority >= own]
    devices = devices_of(connection, {each.lane for each in waits})
    return Counter(serial for _, serial in {(t.experiment, serial) for t in waits for serial in devices[t.lane]})
