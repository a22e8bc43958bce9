"""Keep which devices a person holds. A hold ends by itself, or by hand."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from sqlalchemy import Connection, bindparam, delete, insert, select

from orchestrator.ledger.database import count_up
from orchestrator.ledger.rows import Hold
from orchestrator.ledger.tables import CHOICE_DEVICES, HOLDS

_LASTING = HOLDS.c.until.is_(None) | (HOLDS.c.until > bindparam("now"))
_EVERY = select(HOLDS).where(_LASTING)
_SERIALS = select(HOLDS.c.serial).where(_LASTING).order_by(HOLDS.c.serial)


def every(connection: Connection) -> list[Hold]:
    """Return the holds that have not ended, by device."""
    now = {"now": time.time()}
    known = {row.serial: row for row in connection.execute(_EVERY, now)}
    return [
        Hold(serial, row.who, row.since, row.until, row.note, row.alone)
        if (row := known.get(serial)) is not None
        else Hold(serial, "somebody", 0.0, None, "what was said of it cannot be read", alone=True)
        for serial in connection.scalars(_SERIALS, now)
    ]


def held(connection: Connection, serials: Iterable[str]) -> dict[str, str]:
    """Return whose experiments alone may run on these devices, of those that are held; empty: nobody's.

    Whoever asks has counted up the token before, as `hold` does.
    """
    asked = set(serials)
    return {each.serial: "" if each.alone else each.who for each in every(connection) if each.serial in asked}


def hold(
    connection: Connection, serials: Collection[str], who: str, until: float | None, note: str, alone: bool = False
) -> list[Hold]:
    """Hold devices, or those that `who` holds already until another time; the holds of others on them.

    Where there are any, nothing is changed. No attempt of others begins on a held device: both take the counter of
    tokens first, which stays locked until the commit.
    """
    count_up(connection, "token", 0)
    others = [each for each in every(connection) if each.serial in serials and each.who != who]
    since = {each.serial: each.since for each in every(connection) if each.who == who}
    if not others:
        ended = HOLDS.c.until <= time.time()
        connection.execute(delete(HOLDS).where(HOLDS.c.serial.in_(sorted(serials)) | ended))
        row = {"who": who, "until": until, "note": note, "alone": alone}
        connection.execute(
            insert(HOLDS), [{"serial": each, "since": since.get(each, time.time()), **row} for each in sorted(serials)]
        )
    return others


def end(connection: Connection, serial: str) -> bool:
    """End the hold of a device; return whether it was held."""
    mine = delete(HOLDS).where(HOLDS.c.serial == serial, _LASTING)
    return connection.execute(mine, {"now": time.time()}).rowcount > 0


def known(connection: Connection, serials: Iterable[str]) -> set[str]:
    """Return those of these serials that some experiment was submitted for."""
    mine = CHOICE_DEVICES.c.serial.in_(sorted(set(serials)))
    return set(connection.scalars(select(CHOICE_DEVICES.c.serial).where(mine).distinct()))
