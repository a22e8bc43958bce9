"""The waiting jobs in groups: of one experiment and choice of devices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, Connection, func, select

from orchestrator.ledger.database import parts
from orchestrator.ledger.queue.lanes import choices_of
from orchestrator.ledger.rows import JobState, WaitingGroup
from orchestrator.ledger.tables import EXPERIMENTS, JOBS, LANES, number_of


def waiting_groups(
    connection: Connection, looked_at: Iterable[str], experiment_id: str | None = None
) -> list[WaitingGroup]:
    """Return one experiment's groups or all, by priority and submission; with those of `looked_at` that still wait."""
    key = JOBS.c.lane_id
    mine = [JOBS.c.state == JobState.WAITING]
    if experiment_id is not None:
        mine.append(JOBS.c.experiment == number_of(experiment_id))
    members = _members(connection, looked_at, mine)
    order = (func.max(JOBS.c.priority).desc(), func.min(JOBS.c.experiment), func.min(JOBS.c.sequence))
    count = func.count().label("jobs")
    counted = select(key, count).where(*mine).group_by(key).order_by(*order)
    found = connection.execute(counted).all()
    named = _named(connection, [lane for lane, _ in found])
    return [WaitingGroup(*named[lane], jobs, tuple(members.get(lane, ()))) for lane, jobs in found if lane in named]


def waiting_in_brief(connection: Connection, looked_at: Iterable[str]) -> list[WaitingGroup]:
    """The same of all experiments, at a cost that grows with `looked_at` and not with the groups: one by one are those
    in which such jobs wait, and the rest of each experiment is one group without devices."""
    members = _members(connection, looked_at, [JOBS.c.state == JobState.WAITING])
    named = _named(connection, members)
    jobs = _jobs(connection, members)
    groups = [WaitingGroup(*named[lane], jobs[lane], tuple(of)) for lane, of in members.items() if lane in named]
    told: Counter[str] = Counter()
    for group in groups:
        told[group.experiment_id] += group.jobs
    rest = [(each, total - told[each]) for each, total in _of_experiments(connection)]
    return [*groups, *(WaitingGroup(each, (), left, ()) for each, left in rest if left)]


def _members(
    connection: Connection, looked_at: Iterable[str], mine: Sequence[ColumnElement[bool]]
) -> dict[int, list[str]]:
    """Lane -> which of these jobs wait in it; both in order of priority and submission."""
    what = select(-JOBS.c.priority, JOBS.c.experiment, JOBS.c.sequence, JOBS.c.lane_id, JOBS.c.id).where(*mine)
    found = [row for part in parts(looked_at) for row in connection.execute(what.where(JOBS.c.id.in_(part)))]
    members: dict[int, list[str]] = defaultdict(list)
    for *_, lane, job_id in sorted(tuple(row) for row in found):
        members[lane].append(job_id)
    return members


def _jobs(connection: Connection, lanes: Iterable[int]) -> dict[int, int]:
    """Lane -> jobs that wait in it."""
    waiting = select(JOBS.c.lane_id, func.count()).where(JOBS.c.state == JobState.WAITING)
    counted = (waiting.where(JOBS.c.lane_id.in_(part)).group_by(JOBS.c.lane_id) for part in parts(lanes))
    return {lane: jobs for each in counted for lane, jobs in connection.execute(each)}


def _of_experiments(connection: Connection) -> list[tuple[str, int]]:
    """Experiment and its jobs that wait, in order of submission."""
    counted = select(JOBS.c.experiment, func.count().label("jobs")).where(JOBS.c.state == JobState.WAITING)
    of = counted.group_by(JOBS.c.experiment).subquery()
    named = select(EXPERIMENTS.c.id, of.c.jobs).join(of, of.c.experiment == EXPERIMENTS.c.sequence)
    return [(each, jobs) for each, jobs in connection.execute(named.order_by(EXPERIMENTS.c.sequence))]


def _named(connection: Connection, lanes: Iterable[int]) -> dict[int, tuple[str, tuple[str, ...]]]:
    """Lane -> experiment and devices."""
    named = select(LANES.c.id, LANES.c.choice_id, EXPERIMENTS.c.id.label("experiment_id"))
    of_experiment = named.join(EXPERIMENTS, EXPERIMENTS.c.sequence == LANES.c.experiment)
    rows = [row for part in parts(lanes) for row in connection.execute(of_experiment.where(LANES.c.id.in_(part)))]
    choices = choices_of(connection, {row.choice_id for row in rows})
    return {row.id: (row.experiment_id, choices[row.choice_id]) for row in rows}
