"""Which jobs wait, in groups: of one experiment and choice of devices."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from .rows import JobState, WaitingGroup
from .tables import JOBS

BATCH = 500


def waiting_groups(
    connection: Connection, looked_at: Iterable[str], experiment_id: str | None = None
) -> list[WaitingGroup]:
    """Of one experiment or of all, in order of priority and submission; with those of `looked_at` that still wait."""
    key = (JOBS.c.experiment_id, JOBS.c.candidates)
    mine = [JOBS.c.state == JobState.WAITING]
    if experiment_id is not None:
        mine.append(JOBS.c.experiment_id == experiment_id)
    ids = sorted(looked_at)
    members: dict[tuple[str, str], list[str]] = defaultdict(list)
    for start in range(0, len(ids), BATCH):
        chunk = JOBS.c.id.in_(ids[start : start + BATCH])
        for experiment, candidates, job_id in connection.execute(select(*key, JOBS.c.id).where(*mine, chunk)):
            members[experiment, candidates].append(job_id)
    order = (func.max(JOBS.c.priority).desc(), func.min(JOBS.c.experiment_sequence), func.min(JOBS.c.sequence))
    rows = connection.execute(select(*key, func.count()).where(*mine).group_by(*key).order_by(*order))
    return [
        WaitingGroup(experiment, tuple(json.loads(candidates)), count, tuple(members[experiment, candidates]))
        for experiment, candidates, count in rows
    ]
