"""The bars of devices and hosts: quarantines, hosts that are drained, devices that are held."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import Table

from orchestrator.ledger.database import Database
from orchestrator.ledger.rows import Hold, HostRow, HostState, Quarantine
from orchestrator.ledger.tables import DEVICE_HEALTH, HOST_HEALTH
from orchestrator.model.device import DeviceNote

from . import health, history, holds, hosts, notes
from .bars import Bars, bars
from .history import DeviceWas


class Standing:
    """Standing of a ledger's devices and hosts; one transaction a call. All methods raise ServiceDown if it is away."""

    def __init__(self, database: Database, quarantine_after: int, quarantine_s: float, rest_s: float) -> None:
        self._database = database
        self._quarantine_after, self._quarantine_s, self._rest_s = quarantine_after, quarantine_s, rest_s

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

    def hosts(self) -> list[HostRow]:
        """Hosts of which a person has said something, by name."""
        with self._database.read() as connection:
            return hosts.every(connection)

    def admitted(self) -> list[str]:
        """Names of hosts that have a secret of their own."""
        return [row.name for row in self.hosts() if row.secret_sha256]

    def say_of_host(self, name: str, state: HostState) -> None:
        """Drain a host, remove it, or give it work again."""
        with self._database.write() as connection:
            hosts.say(connection, name, state)

    def admit_host(self, name: str, secret_sha256: str) -> None:
        """Give a host access of its own, under a new secret (empty: take it away), and work."""
        with self._database.write() as connection:
            hosts.say(connection, name, HostState.ACTIVE if secret_sha256 else HostState.REMOVED, secret_sha256)

    def owners(self) -> dict[str, str]:
        """Return the host of each device, by serial."""
        with self._database.read() as connection:
            return hosts.owners(connection)

    def own(self, decided: Mapping[str, str]) -> None:
        """Keep the hosts of these devices, by serial; empty: nobody has the device any more."""
        with self._database.write() as connection:
            hosts.own(connection, decided)

    def holds(self) -> list[Hold]:
        """Return what people and projects have of the devices now, by serial."""
        return [each for each in self.reservations() if not each.is_to_come]

    def reservations(self) -> list[Hold]:
        """The same with what is to come, by serial and begin."""
        with self._database.read() as connection:
            return holds.every(connection)

    def hold(
        self, serials: Collection[str], who: str, until: float | None = None, note: str = "", *, alone: bool = False
    ) -> list[Hold]:
        """Hold devices until then (Unix time; None: until they are released): no attempt begins on them any more but
        those of experiments that `who` submitted; `alone`: not even those.

        The holds that other people have on them; where there are any, nothing is changed.
        """
        return self.reserve(serials, Hold("", who, 0.0, until, note, alone))

    def reserve(self, serials: Collection[str], like: Hold) -> list[Hold]:
        """Hold devices for the time and the holder that a hold says, whatever its device.

        The holds of others that collide; where there are any, nothing is changed.
        """
        with self._database.write() as connection:
            return holds.take(connection, serials, like)

    def end_reservation(self, number: int) -> None:
        """End one, whether it has begun or not."""
        with self._database.write() as connection:
            holds.end_one(connection, number)

    def end_hold(self, serial: str) -> bool:
        """Give a device work again; False where nobody holds it."""
        with self._database.write() as connection:
            return holds.end(connection, serial)

    def noted(self) -> dict[str, DeviceNote]:
        """Return the words of people on devices, by serial."""
        with self._database.read() as connection:
            return notes.noted(connection)

    def note(self, said: Mapping[str, DeviceNote]) -> None:
        """Replace the words of people on these devices."""
        with self._database.write() as connection:
            notes.note(connection, said)

    def history(self, serial: str = "") -> list[DeviceWas]:
        """Return what a device was, or all devices, by serial and the newest first."""
        with self._database.read() as connection:
            return history.history(connection, serial)

    def newest(self) -> dict[str, DeviceWas]:
        """Return what each device was last, by serial."""
        with self._database.read() as connection:
            return history.newest(connection)

    def add_history(self, changed: Sequence[DeviceWas]) -> list[str]:
        """Add rows to the history; return the serials for which their host has no room."""
        with self._database.write() as connection:
            return history.add(connection, changed)

    def known_devices(self, serials: Iterable[str]) -> set[str]:
        """Return those of these devices that some experiment was submitted for."""
        with self._database.read() as connection:
            return holds.known(connection, serials)

    def _quarantined(self, table: Table) -> list[Quarantine]:
        with self._database.read() as connection:
            return health.quarantined(connection, table, self._quarantine_after, self._quarantine_s)
