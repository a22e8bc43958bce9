"""Keep the phone-time that accounts used, in the transactions that end attempts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, Connection, Executable, bindparam, select
from sqlalchemy.dialects import sqlite

from orchestrator.ledger.database import execute_many, padded
from orchestrator.ledger.tables import EXPERIMENTS
from orchestrator.model.live.usage import Account, Used, recent_s, week_of, weight

from .tables import USAGE

_THESE: BindParameter[Any] = bindparam("these", expanding=True)
_ACCOUNTS = select(EXPERIMENTS.c.sequence, EXPERIMENTS.c.project, EXPERIMENTS.c.submitted_by).where(
    EXPERIMENTS.c.sequence.in_(_THESE)
)
_RECENT = select(USAGE).where(USAGE.c.week >= bindparam("week"))


class Spell(NamedTuple):
    """A time for which an experiment had a phone, by Unix time."""

    experiment: int
    """Its number."""
    began_at: float
    ended_at: float


def charge(connection: Connection, spells: Iterable[Spell]) -> None:
    """Add phone-time to the accounts of experiments."""
    lasted = [each for each in spells if each.ended_at > each.began_at]
    if not lasted:
        return
    rows = connection.execute(_ACCOUNTS, {"these": padded({each.experiment for each in lasted})})
    accounts = {row.sequence: Account(row.project, row.submitted_by) for row in rows}
    added = defaultdict[tuple[str, str, int], list[float]](lambda: [0.0, 0.0])
    for each in lasted:
        if each.experiment in accounts:
            sums, seconds = added[*accounts[each.experiment], week_of(each.ended_at)], each.ended_at - each.began_at
            sums[0] += seconds
            sums[1] += seconds * weight(each.ended_at)
    named = ("project", "person", "week", "seconds", "weighted")
    execute_many(
        connection,
        _added(connection.dialect.name),
        [dict(zip(named, (*key, *sums), strict=True)) for key, sums in sorted(added.items())],
    )


@cache
def _added(dialect: str) -> Executable:
    statement: Any = sqlite.insert(USAGE)
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # loading it takes a moment

        statement = postgresql.insert(USAGE)
    sums = {each.name: each + statement.excluded[each.name] for each in (USAGE.c.seconds, USAGE.c.weighted)}
    found: Executable = statement.on_conflict_do_update(index_elements=[*USAGE.primary_key], set_=sums)
    return found


def used(connection: Connection, now: float) -> dict[Account, Used]:
    """Return what each account used that used anything in this week or in the one before."""
    week, weighted = week_of(now), defaultdict[Account, dict[int, float]](dict)
    this_week = dict[Account, float]()
    for row in connection.execute(_RECENT, {"week": week - 1}):
        account = Account(row.project, row.person)
        weighted[account][row.week] = row.weighted
        if row.week == week:
            this_week[account] = row.seconds
    return {each: Used(this_week.get(each, 0.0), recent_s(of.items(), now)) for each, of in weighted.items()}
