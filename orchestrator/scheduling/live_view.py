"""Leases and devices as the scheduler follows them: what the hosts' changes name is read again, the rest is believed.

Everything is read anew when Redis was wiped, and seldom besides, so that whatever was missed is found.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from redis import Redis

from orchestrator.coordination.change_log import LEASE, ChangeLog
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import Ledger
from orchestrator.model.device import Device
from orchestrator.model.live.announcement import HostAnnouncement
from orchestrator.model.live.lease import Lease

from .owners import Owners
from .seldom import Seldom

LOOK_SHARE = 0.01
"""The share of the time for reading everything anew although nothing seems to be missing."""


class LiveView:
    """`refresh`, then read the rest."""

    def __init__(self, redis: Redis, ledger: Ledger) -> None:
        self._log, self._inventory, self._read_leases = ChangeLog(redis), Inventory(redis), Leases(redis)
        self._owners = Owners(redis, ledger)
        self._everything = Seldom(LOOK_SHARE, free_s=0.0)
        self._names: dict[str, str] = {}
        """Serial of a leased device -> HOST:SERIAL."""
        self._said: dict[str, dict[str, Device]] = defaultdict(dict)
        """Serial -> host -> what it says of the device."""
        self._hosts: set[str] = set()
        self._leased_on: Counter[str] = Counter()
        """Host -> its leases."""
        self._shown_by: Counter[str] = Counter()
        """Host -> devices that are believed to be there."""
        self._next_end = 0.0
        """No lease of the view ends before."""
        self.leases: dict[str, Lease] = {}
        """The leases by serial, expired ones included."""
        self.devices: dict[str, Device] = {}
        """The devices by serial, as they were announced."""
        self.changed: set[str] = set()
        """Serials whose leases are not what they were; whoever has seen to them clears it."""
        self.version = 0
        """One more whenever a device is not what it was."""
        self.lease_version = 0
        """One more whenever a lease is another one, or is claimed; its renewal is none."""
        self.now = 0.0
        """Redis' clock at the last `refresh`."""

    def refresh(self, hosts: Sequence[HostAnnouncement]) -> None:
        """Read what changed. Raises ServiceDown."""
        self._owners.alive = alive = {host.host for host in hosts}
        news = self._log.news(alive | self._hosts | {host for host, leases in self._leased_on.items() if leases})
        if news is None or self._everything.due:
            with self._everything.doing():
                self._read_everything()
        else:
            names: dict[bool, set[str]] = {True: set(), False: set()}
            for host, changed in news.items():
                for what in changed:
                    names[what[0] == LEASE].add(f"{host}:{what[1:]}")
            back = alive - self._hosts
            if back or names[False]:
                self._note_devices(self._inventory.announced(None if back else names[False]))
            self._follow_leases(names[True])
        self._hosts = alive
        self._drop_devices(alive)
        for serial in self._owners.overdue(self._said):
            self._settle(serial)
        self._owners.publish()

    def _read_everything(self) -> None:
        self._read_leases.name_farm()
        self.now = self._read_leases.now()
        self._owners.read()
        found = self._read_leases.everywhere(self._names.values())
        gone = dict.fromkeys(name for name in self._names.values() if name not in found)
        self._note_leases({**gone, **found})
        said = self._inventory.announced()
        known = {f"{host}:{serial}" for serial, by_host in self._said.items() for host in by_host}
        self._note_devices({**dict.fromkeys(known - said.keys()), **said})

    def _follow_leases(self, names: Collection[str]) -> None:
        self.now = self._log.now
        if wanted := {*names, *self._late()}:
            self._note_leases(self._read_leases.some(wanted))

    def _late(self) -> set[str]:
        """Leases that seem to have ended: they may have been renewed, which is no change."""
        if self.now < self._next_end:
            return set()
        late = {self._names[serial] for serial, lease in self.leases.items() if lease.expires_at <= self.now}
        following = (lease.expires_at for lease in self.leases.values() if lease.expires_at > self.now)
        self._next_end = self.now if late else min(following, default=float("inf"))
        return late

    def _note_leases(self, found: dict[str, Lease | None]) -> None:
        for name, lease in found.items():
            _, serial = name.partition(":")[::2]
            if lease is None and self._names.get(serial, name) != name:
                continue  # another host's device has this serial now
            before = self._keep_lease(serial, name, lease)
            is_new = _content(before) != _content(lease)
            self.lease_version += is_new
            if is_new or (lease is not None and lease.expires_at <= self.now):
                self.changed.add(serial)

    def _keep_lease(self, serial: str, name: str, lease: Lease | None) -> Lease | None:
        """The one that was known before."""
        before, named = self.leases.pop(serial, None), self._names.pop(serial, None)
        if named is not None:
            self._leased_on[_host(named)] -= 1
        if lease is not None:
            self.leases[serial], self._names[serial] = lease, name
            self._leased_on[_host(name)] += 1
            self._next_end = min(self._next_end, lease.expires_at)
        return before

    def _note_devices(self, found: dict[str, Device | None]) -> None:
        changed = dict[str, None]()
        for name, device in found.items():
            host, serial = name.partition(":")[::2]
            if self._said[serial].get(host) == device:
                continue
            changed[serial] = None
            if device is None:
                del self._said[serial][host]
            else:
                self._said[serial][host] = device
        for serial in changed:  # now all that is said of each is known
            self._settle(serial)

    def _drop_devices(self, alive: Iterable[str]) -> None:
        """Drop the devices whose host says nothing any more."""
        for host in {host for host, devices in self._shown_by.items() if devices} - set(alive):
            for serial in [s for s, by_host in self._said.items() if host in by_host]:
                del self._said[serial][host]
                self._settle(serial)

    def _settle(self, serial: str) -> None:
        said = self._said[serial]
        owner = self._owners.decide(serial, said)
        before = self.devices.pop(serial, None)
        if before is not None:
            self._shown_by[before.facts.host] -= 1
        if owner in said:
            self.devices[serial] = said[owner]
            self._shown_by[owner] += 1
        self.version += before != self.devices.get(serial)
        if not said:
            del self._said[serial]


def _host(name: str) -> str:
    return name.partition(":")[0]


def _content(lease: Lease | None) -> tuple[object, ...]:
    return () if lease is None else (lease.token, lease.job_id, lease.attempt, lease.holder)
