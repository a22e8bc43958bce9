"""Which jobs wait, in groups: of one experiment and choice of devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from orchestrator.ledger.lanes import choices_of
from orchestrator.ledger.rows import JobState, WaitingGroup
from orchestrator.ledger.tables import EXPERIMENTS, JOBS, LANES, number_of

BATCH = 500


def waiting_groups(
    connection: Connection, looked_at: Iterable[str], experiment_id: str | None = None
) -> list[WaitingGroup]:
    """Of one experiment or of all, in order of priority and submission; with those of `looked_at` that still wait."""
    key = JOBS.c.lane_id
    mine = [JOBS.c.state == JobState.WAITING]
    if experiment_id is not None:
        mine.append(JOBS.c.experiment == number_of(experiment_id))
    ids = sorted(looked_at)
    members: dict[int, list[str]] = defaultdict(list)
    for start in range(0, len(ids), BATCH):
        chunk = JOBS.c.id.in_(ids[start : start + BATCH])
        for lane, job_id in connection.execute(select(key, JOBS.c.id).where(*mine, chunk)):
            members[lane].append(job_id)
    order = (func.max(JOBS.c.priority).desc(), func.min(JOBS.c.experiment), func.min(JOBS.c.sequence))
    count = func.count().label("jobs")
    counted = select(key, count).where(*mine).group_by(key).order_by(*order)
    known = _lanes(connection, experiment_id)
    return [WaitingGroup(*known[lane], jobs, tuple(members[lane])) for lane, jobs in connection.execute(counted)]


def _lanes(connection: Connection, experiment_id: str | None) -> dict[int, tuple[str, tuple[str, ...]]]:
    """Lane -> experiment and devices, of those in which jobs wait."""
    waiting = select(JOBS.c.lane_id).where(JOBS.c.state == JobState.WAITING).distinct()
    named = select(LANES.c.id, LANES.c.choice_id, EXPERIMENTS.c.id.label("experiment_id"))
    of_experiment = named.join(EXPERIMENTS, EXPERIMENTS.c.sequence == LANES.c.experiment)
    statement = of_experiment.where(LANES.c.id.in_(waiting))
    if experiment_id is not None:
        statement = statement.where(EXPERIMENTS.c.id == experiment_id)
    rows = connection.execute(statement).all()
    choices = choices_of(connection, {row.choice_id for row in rows})
    return {row.id: (row.experiment_id, choices[row.choice_id]) for row in rows}
