"""Keep webhooks: to which addresses the ends of experiments and nights are told, and how that went."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, exists, func, insert, select, update

from orchestrator.ledger.rows import OPEN, AnyRow
from orchestrator.ledger.tables import EXPERIMENTS, JOBS, NIGHTS
from orchestrator.model.rights import Webhook

from .kept import Kept
from .tables import DELIVERIES, WEBHOOKS

FIRST_S, LONGEST_S, MOST_TRIES = 10.0, 21_600.0, 10
"""The time to the second try, four times as long before each further one, and the number of tries, in a day."""
LATEST_S = 172_800.0
"""A night that was due so long before a webhook was made is over, and not looked at."""


@dataclass(frozen=True)
class Due:
    """An end that is to be told now."""

    webhook: str
    url: str
    key: str
    kind: str
    """`experiment` or `night`."""
    target: str
    tries: int
    """The number of tries before."""


class Webhooks(Kept[Webhook]):
    """Webhooks of a ledger, each with what was told last."""

    made, table, ended, emptied = Webhook, WEBHOOKS, WEBHOOKS.c.ended_at, ("key",)

    def add(self, url: str, project: str, who: str) -> tuple[str, str]:
        """Return the id and the key of a new webhook, which is told what ends from now on."""
        name, key = secrets.token_hex(4), secrets.token_urlsafe(32)
        row = {"id": name, "url": url, "key": key, "project": project, "who": who[:100], "made_at": time.time()}
        with self._database.write() as connection:
            connection.execute(insert(WEBHOOKS).values(**row, after=_told_until(connection, 0)))
            _notice(connection, WEBHOOKS.c.id == name, None)  # what is over already is not told
        return name, key

    def _told(self, connection: Connection, rows: Sequence[AnyRow]) -> list[Webhook]:
        mine = DELIVERIES.c.webhook.in_([row.id for row in rows])
        tried = select(DELIVERIES).where(DELIVERIES.c.tries > 0, mine).order_by(DELIVERIES.c.tried_at)
        last = {row.webhook: row for row in connection.execute(tried)}
        return [_webhook(row, last.get(row.id)) for row in rows]

    def notice(self) -> None:
        """Note what has ended since, for all webhooks that count."""
        with self._database.read() as connection:
            if connection.execute(select(WEBHOOKS.c.id).where(WEBHOOKS.c.ended_at.is_(None)).limit(1)).first() is None:
                return
        with self._database.write() as connection:
            _notice(connection, WEBHOOKS.c.ended_at.is_(None), time.time())

    def due(self, most: int) -> list[Due]:
        """Return what is to be told now, what waits longest first."""
        waits = select(DELIVERIES, WEBHOOKS.c.url, WEBHOOKS.c.key).join(WEBHOOKS, WEBHOOKS.c.id == DELIVERIES.c.webhook)
        now = (DELIVERIES.c.next_at <= time.time()) & WEBHOOKS.c.ended_at.is_(None)
        with self._database.read() as connection:
            rows = connection.execute(waits.where(now).order_by(DELIVERIES.c.next_at).limit(most)).all()
        return [_due(row) for row in rows]

    def tried(self, what: Due, error: str) -> None:
        """Note how it went; what failed is tried again later, and given up after a day."""
        now, tries = time.time(), what.tries + 1
        again = now + min(LONGEST_S, FIRST_S * 4.0**what.tries) if error and tries < MOST_TRIES else None
        mine = (DELIVERIES.c.webhook == what.webhook) & (DELIVERIES.c.event == f"{what.kind} {what.target}")
        with self._database.write() as connection:
            told = {"tries": tries, "tried_at": now, "next_at": again, "error": error[:500]}
            connection.execute(update(DELIVERIES).where(mine).values(**told))


def _notice(connection: Connection, which: ColumnElement[bool], next_at: float | None) -> None:
    """Note what these webhooks have not been told; it is told at `next_at`, or never."""
    for hook in connection.execute(select(WEBHOOKS).where(which)).all():
        of_project = [EXPERIMENTS.c.project == hook.project] * bool(hook.project)
        ended = select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.sequence > hook.after, ~_is_open(), *of_project)
        events = [f"experiment {each}" for each in connection.scalars(ended)]
        if not hook.project:
            over = select(NIGHTS.c.id).where(NIGHTS.c.over, NIGHTS.c.due_at > hook.made_at - LATEST_S)
            events += [f"night {each}" for each in connection.scalars(over)]
        known = set(connection.scalars(select(DELIVERIES.c.event).where(DELIVERIES.c.webhook == hook.id)))
        row = {"webhook": hook.id, "tries": 0, "next_at": next_at, "error": ""}
        if rows := [{**row, "event": each} for each in events if each not in known]:
            connection.execute(insert(DELIVERIES), rows)
        after = _told_until(connection, hook.after)
        connection.execute(update(WEBHOOKS).where(WEBHOOKS.c.id == hook.id).values(after=after))


def _told_until(connection: Connection, after: int) -> int:
    """Return the number of the last experiment before the first that is open, of those after this one."""
    mine = EXPERIMENTS.c.sequence > after
    first_open = connection.scalar(select(func.min(EXPERIMENTS.c.sequence)).where(mine, _is_open()))
    newest = connection.scalar(select(func.max(EXPERIMENTS.c.sequence)).where(mine))
    return int(first_open) - 1 if first_open is not None else int(newest or after)


def _is_open() -> ColumnElement[bool]:
    return exists().where(JOBS.c.experiment == EXPERIMENTS.c.sequence, JOBS.c.state.in_(OPEN))


def _due(row: AnyRow) -> Due:
    kind, _, target = row.event.partition(" ")
    return Due(row.webhook, row.url, row.key, kind, target, row.tries)


def _webhook(row: AnyRow, last: AnyRow | None) -> Webhook:
    told = (last.event, last.tried_at, last.error) if last is not None else ("", None, "")
    return Webhook(row.id, row.url, row.project, row.who, row.made_at, row.ended_at, *told)
