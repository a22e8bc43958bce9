"""Keep what people say of hosts: being drained, removed, active again."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, delete, insert, select

from orchestrator.ledger.database import count_up
from orchestrator.ledger.rows import HostRow, HostState
from orchestrator.ledger.tables import HOSTS, OWNERS

_EVERY = select(HOSTS)
_HASH = re.compile("([0-9a-f]{64})?")
"""A secret's: Redis takes no other, and is asked in each start of a scheduler."""
_NAMES = select(HOSTS.c.name).order_by(HOSTS.c.name)


def every(connection: Connection) -> list[HostRow]:
    """Return the hosts of which something was said, by name."""
    known = {row.name: row for row in connection.execute(_EVERY) if _HASH.fullmatch(row.secret_sha256)}
    rows = ((name, known.get(name)) for name in connection.scalars(_NAMES))
    return [
        HostRow(name, HostState(row.state), row.since, row.secret_sha256)
        if row is not None
        else HostRow(name, HostState.DRAINING, 0.0)  # it cannot be read: nobody knows what was said
        for name, row in rows
    ]


def say(connection: Connection, name: str, state: HostState, secret_sha256: str | None = None) -> None:
    """Replaces what was said before. `secret_sha256`: of its new secret; None: the one that it has.

    No attempt begins meanwhile: who begins one takes the counter of tokens first, too.
    """
    count_up(connection, "token", 0)
    secret = next(iter(connection.scalars(select(HOSTS.c.secret_sha256).where(HOSTS.c.name == name)).all()), "")
    connection.execute(delete(HOSTS).where(HOSTS.c.name == name))
    row = {"name": name, "state": state, "since": time.time()}
    connection.execute(insert(HOSTS).values(**row, secret_sha256=secret if secret_sha256 is None else secret_sha256))


def owners(connection: Connection) -> dict[str, str]:
    """Return the host of each device, by serial."""
    return {row.serial: row.host for row in connection.execute(select(OWNERS))}


def own(connection: Connection, decided: Mapping[str, str]) -> None:
    """Keep the hosts of these devices, by serial; empty: nobody has the device any more."""
    is_one = OWNERS.c.serial == bindparam("of")
    connection.execute(delete(OWNERS).where(is_one), [{"of": serial} for serial in decided])
    if kept := [{"serial": serial, "host": host} for serial, host in decided.items() if host]:
        connection.execute(insert(OWNERS), kept)
