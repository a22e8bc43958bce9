"""Read at once all that keeps devices from work although they are announced as ready."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from sqlalchemy import Connection, Executable, select

from orchestrator.ledger.rows import Hold, HostRow, Quarantine
from orchestrator.ledger.tables import DEVICE_HEALTH, HOLDS, HOST_HEALTH, HOSTS

from . import health, holds, hosts


class Bars(NamedTuple):
    """The bars that the ledger has at one moment."""

    quarantined: tuple[Quarantine, ...]
    quarantined_hosts: tuple[Quarantine, ...]
    resting: dict[str, float]
    """Device -> Unix time until which it rests after a loss."""
    faults: dict[str, float]
    """Host -> Unix time of its latest fault, of those after which nothing has gone well on it."""
    hosts: tuple[HostRow, ...]
    """The hosts of which a person has said something."""
    holds: tuple[Hold, ...]
    """Holds that have begun, and that are to come."""


def bars(connection: Connection, quarantine_after: int, quarantine_s: float, rest_s: float) -> Bars:
    """Return all bars in the caller's transaction: six transactions of one statement take the scheduler twice as
    long. One question tells which tables have something to say; mostly none has."""
    devices, faulty, said, held = connection.execute(_something()).one()
    return Bars(
        tuple(health.quarantined(connection, DEVICE_HEALTH, quarantine_after, quarantine_s)) if devices else (),
        tuple(health.quarantined(connection, HOST_HEALTH, quarantine_after, quarantine_s)) if faulty else (),
        health.resting(connection, rest_s) if devices else {},
        health.faults(connection) if faulty else {},
        tuple(hosts.every(connection)) if said else (),
        tuple(holds.every(connection)) if held else (),
    )


@cache
def _something() -> Executable:
    counted = [(table.c.failures > 0) | table.c.quarantined_at.is_not(None) for table in (DEVICE_HEALTH, HOST_HEALTH)]
    rows = [*(select(1).where(each) for each in counted), *(select(1).select_from(table) for table in (HOSTS, HOLDS))]
    return select(*(each.exists() for each in rows))
