"""Number the changes of the queue, in the transactions that make them: whoever knows a number reads what is newer.

The number comes from one row that stays locked until the commit, so that numbers become visible in their order.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, Connection, bindparam, select, update

from orchestrator.ledger.database import count_up, parts
from orchestrator.ledger.tables import ATTEMPTS, COUNTERS, LANES

NUMBER = "change"
_CHANGED = update(LANES).where(LANES.c.id.in_(bindparam("these", expanding=True))).values(changed=bindparam("change"))
_NEWEST = select(COUNTERS.c.value).where(COUNTERS.c.name == NUMBER)


def newest(connection: Connection) -> int:
    """The number of the last change."""
    return int(connection.execute(_NEWEST).scalar_one())


def note_lanes(connection: Connection, lanes: Collection[int]) -> int:
    """Jobs of these lanes began to wait, or wait no more; the number of that change, 0 where there are none."""
    numbers = set(lanes)
    if not numbers:
        return 0
    change = count_up(connection, NUMBER)
    for part in parts(numbers):
        connection.execute(_CHANGED, {"these": part, "change": change})
    return change


def note_attempts(connection: Connection, which: ColumnElement[bool]) -> None:
    """These attempts began, were claimed or cancelled, or ended."""
    connection.execute(update(ATTEMPTS).where(which).values(changed=count_up(connection, NUMBER)))
