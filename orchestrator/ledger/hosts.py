"""Keep what people say of hosts: being drained, removed, active again."""

from __future__ import annotations

import time

from sqlalchemy import Connection, delete, insert, select

from .rows import HostRow, HostState
from .tables import HOSTS


def every(connection: Connection) -> list[HostRow]:
    """Those of which something was said, by name."""
    rows = connection.execute(select(HOSTS).order_by(HOSTS.c.name))
    return [HostRow(row.name, HostState(row.state), row.since) for row in rows]


def say(connection: Connection, name: str, state: HostState) -> None:
    """Replaces what was said before."""
    connection.execute(delete(HOSTS).where(HOSTS.c.name == name))
    connection.execute(insert(HOSTS).values(name=name, state=state, since=time.time()))
