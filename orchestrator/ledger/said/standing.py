"""The bars of devices and hosts: quarantines, hosts that are drained, devices that are held."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Table

from orchestrator.ledger.database import Database, reads, writes
from orchestrator.ledger.rows import Hold, HostState, Quarantine
from orchestrator.ledger.tables import DEVICE_HEALTH, HOST_HEALTH

from . import health, history, holds, hosts, notes
from .bars import Bars, bars


class Standing:
    """Standing of a ledger's devices and hosts; one transaction a call. All methods raise ServiceDown if it is away."""

    def __init__(self, database: Database, quarantine_after: int, quarantine_s: float, rest_s: float) -> None:
        self._database = database
        self._quarantine_after, self._quarantine_s, self._rest_s = quarantine_after, quarantine_s, rest_s

    say_of_host = writes(hosts.say)
    owners = reads(hosts.owners)
    own = writes(hosts.own)
    hosts = reads(hosts.every)
    reservations = reads(holds.every)
    reserve = writes(holds.take)
    end_reservation = writes(holds.end_one)
    end_hold = writes(holds.end)
    known_devices = reads(holds.known)
    noted = reads(notes.noted)
    note = writes(notes.note)
    newest = reads(history.newest)
    add_history = writes(history.add)
    history = reads(history.history)

    def bars(self) -> Bars:
        """All that keeps devices from work, at one moment."""
        with self._database.read() as connection:
            return bars(connection, self._quarantine_after, self._quarantine_s, self._rest_s)

    def quarantined(self) -> list[Quarantine]:
        """Devices in quarantine."""
        return self._quarantined(DEVICE_HEALTH)

    def quarantined_hosts(self) -> list[Quarantine]:
        return self._quarantined(HOST_HEALTH)

    def clear_quarantine(self, serial: str) -> bool:
        """Give a device work again and forget its losses; False where it was not in quarantine."""
        with self._database.write() as connection:
            return health.clear(connection, DEVICE_HEALTH, serial)

    def clear_host(self, host: str) -> bool:
        """Give a host work again and forget its faults; False where it was not in quarantine."""
        with self._database.write() as connection:
            return health.clear(connection, HOST_HEALTH, host)

    def parole(self, serial: str) -> bool:
        """Give a device work again on probation: one more loss puts it back. False where it was not in quarantine."""
        with self._database.write() as connection:
            return health.parole(connection, DEVICE_HEALTH, serial)

    def parole_host(self, host: str) -> bool:
        """The same of a host."""
        with self._database.write() as connection:
            return health.parole(connection, HOST_HEALTH, host)

    def admitted(self) -> list[str]:
        """Names of hosts that have a secret of their own."""
        return [row.name for row in self.hosts() if row.secret_sha256]

    def admit_host(self, name: str, secret_sha256: str) -> None:
        """Give a host access of its own, under a new secret (empty: take it away), and work."""
        with self._database.write() as connection:
            hosts.say(connection, name, HostState.ACTIVE if secret_sha256 else HostState.REMOVED, secret_sha256)

    def holds(self) -> list[Hold]:
        """Return what people and projects have of the devices now, by serial."""
        return [each for each in self.reservations() if not each.is_to_come]

    def hold(
        self, serials: Collection[str], who: str, until: float | None = None, note: str = "", *, alone: bool = False
    ) -> list[Hold]:
        """Hold devices until then (Unix time; None: until they are released): no attempt begins on them any more but
        those of experiments that `who` submitted; `alone`: not even those.

        The holds that other people have on them; where there are any, nothing is changed.
        """
        return self.reserve(serials, Hold("", who, 0.0, until, note, alone))

    def _quarantined(self, table: Table) -> list[Quarantine]:
        with self._database.read() as connection:
            return health.quarantined(connection, table, self._quarantine_after, self._quarantine_s)
