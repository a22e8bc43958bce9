"""Read the summaries of queueing experiments; a run's requests stay where they are."""

from __future__ import annotations

from sqlalchemy import Connection, and_, func, select

from orchestrator.ledger.rows import AnyRow
from orchestrator.ledger.tables import QUEUE_RUNS


def newest(connection: Connection, most: int) -> list[AnyRow]:
    """Return the newest run of each of the names that ran last: id, name, began_at, source, requests, summary."""
    latest = func.max(QUEUE_RUNS.c.began_at).label("began_at")
    by_name = select(QUEUE_RUNS.c.name, latest).group_by(QUEUE_RUNS.c.name).order_by(latest.desc())
    of_names = by_name.limit(most).subquery()
    same = and_(QUEUE_RUNS.c.name == of_names.c.name, QUEUE_RUNS.c.began_at == of_names.c.began_at)
    columns = [QUEUE_RUNS.c[each] for each in ("id", "name", "began_at", "source", "requests", "summary")]
    wanted = select(*columns).join(of_names, same).order_by(QUEUE_RUNS.c.name, QUEUE_RUNS.c.id)
    return list(connection.execute(wanted))
