"""Keep which devices a person holds. A hold ends by itself, or by hand."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from orchestrator.ledger.database import count_up
from orchestrator.ledger.people.groups import belonging
from orchestrator.ledger.rows import Hold
from orchestrator.ledger.tables import CHOICE_DEVICES, HOLDS

_LASTING = HOLDS.c.until.is_(None) | (HOLDS.c.until > bindparam("now"))
_EVERY = select(HOLDS).where(_LASTING)
_SERIALS = select(HOLDS.c.id, HOLDS.c.serial).where(_LASTING).order_by(HOLDS.c.serial, HOLDS.c.begins, HOLDS.c.id)
_POOL = (HOLDS.c.project != "") & HOLDS.c.until.is_(None)


def every(connection: Connection, serials: Iterable[str] | None = None) -> list[Hold]:
    """Return the holds that have not ended, of these devices or of all, by device and begin; some are to come."""
    asked: dict[str, Any] = {"now": time.time()}
    there = connection.execute(_SERIALS, asked).all()
    if serials is not None and there:
        wanted = set(serials)
        there = [each for each in there if each.serial in wanted]
    if not there:
        return []
    known = {row.id: row for row in connection.execute(_EVERY, asked)}
    groups = belonging(connection, {row.who for row in known.values() if not row.project})
    return [
        Hold(row.serial, row.who, row.since, row.until, row.note, row.alone, row.project, row.begins, row.id,
             () if row.project else groups.get(row.who, ()))
        if (row := known.get(number)) is not None
        else Hold(serial, "somebody", 0.0, None, "what was said of it cannot be read", alone=True, id=number)
        for number, serial in there
    ]  # fmt: skip


def held(connection: Connection, serials: Iterable[str]) -> dict[str, list[Hold]]:
    """Return the holds on these devices that have begun, of those that are held.

    Whoever asks has counted up the token before, as `take` does.
    """
    found: dict[str, list[Hold]] = defaultdict(list)
    for each in every(connection, serials):
        if not each.is_to_come:
            found[each.serial].append(each)
    return found


def take(connection: Connection, serials: Collection[str], like: Hold) -> list[Hold]:
    """Hold devices, or those that the same one holds already until another time; the holds of others that collide.

    Where there are any, nothing is changed. No attempt of others begins on a held device: both take the counter of
    tokens first, which stays locked until the commit.
    """
    count_up(connection, "token", 0)
    there, since = every(connection, serials), dict[str, float]()
    if others := [each for each in there if each.collides(like)]:
        return others
    if not like.is_reserved:
        since = {each.serial: each.since for each in there if not each.is_reserved}
        own = HOLDS.c.serial.in_(sorted(serials)) & (HOLDS.c.begins == 0.0) & (HOLDS.c.project == "")
        connection.execute(delete(HOLDS).where(own))
    connection.execute(delete(HOLDS).where(HOLDS.c.until <= time.time()))
    row = {"who": like.who, "project": like.project, "begins": like.begins, "until": like.until, "note": like.note,
           "alone": like.alone}  # fmt: skip
    connection.execute(
        insert(HOLDS), [{"serial": each, "since": since.get(each, time.time()), **row} for each in sorted(serials)]
    )
    return []


def end(connection: Connection, serial: str) -> bool:
    """End the holds of a device that have begun; return whether it was held. It stays in its pool."""
    begun = (HOLDS.c.serial == serial) & (HOLDS.c.begins <= bindparam("now"))
    mine = delete(HOLDS).where(begun, _LASTING, ~_POOL)
    return connection.execute(mine, {"now": time.time()}).rowcount > 0


def end_one(connection: Connection, number: int) -> None:
    """End a hold, whether it has begun or not."""
    connection.execute(delete(HOLDS).where(HOLDS.c.id == number))


def known(connection: Connection, serials: Iterable[str]) -> set[str]:
    """Return those of these serials that some experiment was submitted for."""
    mine = CHOICE_DEVICES.c.serial.in_(sorted(set(serials)))
    return set(connection.scalars(select(CHOICE_DEVICES.c.serial).where(mine).distinct()))
