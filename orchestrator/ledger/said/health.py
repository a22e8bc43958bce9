"""Count what a device or a host lost: a device rests after each loss, either is quarantined after too many in a row.

The rest gives discovery time to notice that a phone was unplugged, before the next job is lost on it too. A quarantine
ends by hand, or after its term with probation: the losses stay counted, so that one more brings it back for twice as
long; one attempt that is not lost clears it.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from sqlalchemy import Column, Connection, Table, bindparam, delete, insert, select, update

from orchestrator.ledger.blame import HOST, NOT_THE_DEVICE
from orchestrator.ledger.database import padded
from orchestrator.ledger.rows import AnyRow, Quarantine
from orchestrator.ledger.tables import DEVICE_HEALTH, HOST_HEALTH
from orchestrator.model.record import Outcome

MAX_TERM_S = 3600.0
"""No quarantine is longer: somebody may have mended the phone."""


def _key(table: Table) -> Column[Any]:
    (column,) = table.primary_key.columns
    return column


_FORGIVEN = {
    table: update(table)
    .where(_key(table).in_(bindparam("these", expanding=True)), table.c.failures > 0)
    .values(failures=0)
    for table in (DEVICE_HEALTH, HOST_HEALTH)
}
_QUARANTINED = {
    table: select(_key(table).label("name"), table).where(table.c.quarantined_at.is_not(None)).order_by(_key(table))
    for table in (DEVICE_HEALTH, HOST_HEALTH)
}
_LOST = select(DEVICE_HEALTH.c.serial, DEVICE_HEALTH.c.failures, DEVICE_HEALTH.c.failed_at).where(
    DEVICE_HEALTH.c.failures > 0
)
_FAULTY = select(HOST_HEALTH).where(HOST_HEALTH.c.failures > 0, HOST_HEALTH.c.failed_at <= bindparam("now"))


def update_health(connection: Connection, attempt: AnyRow, outcome: Outcome, cause: str, quarantine_after: int) -> None:
    """Count one attempt's end for or against its device and its host."""
    if outcome is Outcome.CANCELLED:
        return
    if outcome is not Outcome.LOST:
        forgive(connection, [attempt.serial], [attempt.host])
    elif cause in HOST:
        _blame_host(connection, attempt, cause, quarantine_after)
    elif cause not in NOT_THE_DEVICE:
        _blame(connection, DEVICE_HEALTH, attempt.serial, cause, quarantine_after)


def _blame_host(connection: Connection, attempt: AnyRow, cause: str, quarantine_after: int) -> None:
    """Attempts that were under way together are lost together: they are one fault, not one each."""
    row = _row(connection, HOST_HEALTH, attempt.host)
    if row is None or attempt.started_at > row.failed_at:
        _blame(connection, HOST_HEALTH, attempt.host, cause, quarantine_after)


def absolve_host(connection: Connection, host: str) -> None:
    """A job was the reason: forget the host's faults, and let it work."""
    if not clear(connection, HOST_HEALTH, host):
        forgive(connection, [], [host])


def forgive(connection: Connection, serials: Collection[str], hosts: Collection[str]) -> None:
    """Something went well on these devices and hosts: what they lost in a row before is not counted any more."""
    for statement, names in ((_FORGIVEN[DEVICE_HEALTH], serials), (_FORGIVEN[HOST_HEALTH], hosts)):
        if names:
            connection.execute(statement, {"these": padded(names)})


def _blame(connection: Connection, table: Table, name: str, cause: str, quarantine_after: int) -> None:
    row = _row(connection, table, name)
    if row is None:
        connection.execute(delete(table).where(_key(table) == name))  # it may be there, and cannot be read
        connection.execute(insert(table).values({_key(table).name: name, "failures": 0, "reason": ""}))
    failures = (row.failures if row is not None else 0) + 1
    _set(connection, table, name, failures=failures, failed_at=time.time())
    if failures >= quarantine_after and (row is None or row.quarantined_at is None):
        lost = "faults of its own in a row" if table is HOST_HEALTH else "attempts in a row were lost on it"
        reason = f"{failures} {lost}, the last by {cause or 'an unknown cause'}"
        _set(connection, table, name, quarantined_at=time.time(), reason=reason)


def clear(connection: Connection, table: Table, name: str) -> bool:
    """Lift a quarantine and forget its losses; False where there is none."""
    return _lift(connection, table, name, failures=0)


def parole(connection: Connection, table: Table, name: str) -> bool:
    """Lift a quarantine on probation; False where there is none."""
    return _lift(connection, table, name)


def _lift(connection: Connection, table: Table, name: str, **more: object) -> bool:
    statement = update(table).where(_key(table) == name, table.c.quarantined_at.is_not(None))
    return connection.execute(statement.values(quarantined_at=None, reason="", **more)).rowcount > 0


def resting(connection: Connection, rest_s: float) -> dict[str, float]:
    """Device -> Unix time until which it rests: `rest_s` for each consecutive loss, from the latest."""
    until = {row.serial: row.failed_at + rest_s * row.failures for row in connection.execute(_LOST)}
    return {serial: at for serial, at in until.items() if at > time.time()}


def faults(connection: Connection) -> dict[str, float]:
    """Host -> Unix time of its latest fault, of those after which nothing has gone well on it yet; without one that
    seems to come because this machine's clock was put back."""
    return {row.host: row.failed_at for row in connection.execute(_FAULTY, {"now": time.time()})}


def quarantined(connection: Connection, table: Table, quarantine_after: int, term_s: float) -> list[Quarantine]:
    """Devices or hosts in quarantine: the first time for `term_s`, doubled by each loss on probation."""
    rows = connection.execute(_QUARANTINED[table])
    return [
        Quarantine(
            serial=row.name,
            reason=row.reason,
            since=row.quarantined_at,
            until=row.quarantined_at + _term_s(row.failures - quarantine_after, term_s),
        )
        for row in rows
    ]


def _term_s(relapses: int, term_s: float) -> float:
    return float(min(term_s * 2 ** min(max(0, relapses), 20), MAX_TERM_S))


def _row(connection: Connection, table: Table, name: str) -> AnyRow | None:
    return next(iter(connection.execute(select(table).where(_key(table) == name)).all()), None)


def _set(connection: Connection, table: Table, name: str, **values: object) -> None:
    connection.execute(update(table).where(_key(table) == name).values(**values))
