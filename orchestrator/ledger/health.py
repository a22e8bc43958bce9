"""Count the attempts that a device lost; let it rest after each, and quarantine it after too many in a row.

The rest gives discovery time to notice that a phone was unplugged, before the next job is lost on it too. A quarantine
ends by hand, or after its term with probation: the losses stay counted, so that one more puts the device back for twice
as long; one attempt that is not lost clears it.
"""

from __future__ import annotations

import time

from sqlalchemy import Connection, insert, select, update

from orchestrator.model.record import Outcome

from .rows import Quarantine
from .tables import DEVICE_HEALTH

NOT_THE_DEVICE = frozenset(
    {"condition_not_met", "device_busy", "not_claimed", "lease_refused", "lease_missing", "lease_expired",
     "record_missing", "lease_lost", "service_down", "host_stopping", "cancelled"}
)  # fmt: skip
"""Causes of a loss that say nothing against the device: its host, Redis or a person was the reason."""
MAX_TERM_S = 3600.0
"""No quarantine is longer: somebody may have mended the phone."""


def update_health(connection: Connection, serial: str, outcome: Outcome, cause: str, quarantine_after: int) -> None:
    """Count one attempt's end for or against its device."""
    if outcome is Outcome.CANCELLED or (outcome is Outcome.LOST and cause in NOT_THE_DEVICE):
        return
    row = connection.execute(select(DEVICE_HEALTH).where(DEVICE_HEALTH.c.serial == serial)).first()
    if outcome is not Outcome.LOST:
        if row is not None and row.failures:
            _set(connection, serial, failures=0)
        return
    failures = (row.failures if row is not None else 0) + 1
    if row is None:
        connection.execute(insert(DEVICE_HEALTH).values(serial=serial, failures=0, reason=""))
    _set(connection, serial, failures=failures, failed_at=time.time())
    if failures >= quarantine_after and (row is None or row.quarantined_at is None):
        reason = f"{failures} attempts in a row were lost on it, the last by {cause or 'an unknown cause'}"
        _set(connection, serial, quarantined_at=time.time(), reason=reason)


def clear(connection: Connection, serial: str) -> bool:
    """Lift a quarantine and forget its losses; False where there is none."""
    return _lift(connection, serial, failures=0)


def parole(connection: Connection, serial: str) -> bool:
    """Lift a quarantine on probation; False where there is none."""
    return _lift(connection, serial)


def _lift(connection: Connection, serial: str, **more: object) -> bool:
    key = (DEVICE_HEALTH.c.serial == serial) & DEVICE_HEALTH.c.quarantined_at.is_not(None)
    statement = update(DEVICE_HEALTH).where(key).values(quarantined_at=None, reason="", **more)
    return connection.execute(statement).rowcount > 0


def resting(connection: Connection, rest_s: float) -> dict[str, float]:
    """Device -> Unix time until which it rests: `rest_s` for each consecutive loss, from the latest."""
    health = DEVICE_HEALTH.c
    rows = connection.execute(select(health.serial, health.failures, health.failed_at).where(health.failures > 0))
    until = {serial: failed_at + rest_s * failures for serial, failures, failed_at in rows}
    return {serial: at for serial, at in until.items() if at > time.time()}


def quarantined(connection: Connection, quarantine_after: int, term_s: float) -> list[Quarantine]:
    """Devices in quarantine: the first time for `term_s`, doubled by each loss on probation."""
    rows = connection.execute(
        select(DEVICE_HEALTH).where(DEVICE_HEALTH.c.quarantined_at.is_not(None)).order_by(DEVICE_HEALTH.c.serial)
    )
    return [
        Quarantine(
            serial=row.serial,
            reason=row.reason,
            since=row.quarantined_at,
            until=row.quarantined_at + _term_s(row.failures - quarantine_after, term_s),
        )
        for row in rows
    ]


def _term_s(relapses: int, term_s: float) -> float:
    return float(min(term_s * 2 ** min(max(0, relapses), 20), MAX_TERM_S))


def _set(connection: Connection, serial: str, **values: object) -> None:
    connection.execute(update(DEVICE_HEALTH).where(DEVICE_HEALTH.c.serial == serial).values(**values))
