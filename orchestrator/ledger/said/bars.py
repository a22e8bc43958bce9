"""Read at once all that keeps devices from work although they are announced as ready."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from orchestrator.ledger import health
from orchestrator.ledger.rows import Hold, HostRow, Quarantine
from orchestrator.ledger.tables import DEVICE_HEALTH, HOST_HEALTH

from . import holds, hosts


class Bars(NamedTuple):
    """As the ledger has them at one moment."""

    quarantined: tuple[Quarantine, ...]
    quarantined_hosts: tuple[Quarantine, ...]
    resting: dict[str, float]
    """Device -> Unix time until which it rests after a loss."""
    faults: dict[str, float]
    """Host -> Unix time of its latest fault, of those after which nothing has gone well on it."""
    hosts: tuple[HostRow, ...]
    """Those of which a person has said something."""
    holds: tuple[Hold, ...]


def bars(connection: Connection, quarantine_after: int, quarantine_s: float, rest_s: float) -> Bars:
    """In the caller's transaction: six transactions of one statement take the scheduler twice as long."""
    return Bars(
        tuple(health.quarantined(connection, DEVICE_HEALTH, quarantine_after, quarantine_s)),
        tuple(health.quarantined(connection, HOST_HEALTH, quarantine_after, quarantine_s)),
        health.resting(connection, rest_s),
        health.faults(connection),
        tuple(hosts.every(connection)),
        tuple(holds.every(connection)),
    )
