"""The host that has a device, where several announce one of its serial: decided here, kept in the ledger."""

from __future__ import annotations

import time
from collections.abc import Collection, Container, Mapping

from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.owners import owners, publish
from orchestrator.ledger import HostState, Ledger
from orchestrator.ledger.rows import HostRow
from orchestrator.model.device import Device, Health


class Owners:
    """The farm's decisions, which the ledger keeps and Redis publishes.

    A host keeps its device until it says that it is offline, or says nothing of it although it says other things. A
    host that is silent altogether keeps it from hosts with a secret of their own until a person drains or removes it.
    """

    def __init__(self, redis: Redis, ledger: Ledger) -> None:
        self._redis, self._standing = redis, ledger.standing
        self._of: dict[str, str] = {}
        self._kept: dict[str, str] = {}
        """The owners as the ledger has them."""
        self._published: dict[str, str] = {}
        self._missed_at: dict[str, float] = {}
        """Serial -> since when its owner says nothing of it."""
        self._hosts: dict[str, HostRow] = {}
        self.alive: Collection[str] = ()
        """Hosts that announce themselves."""

    def read(self) -> None:
        """Read what was decided before, or by another scheduler. Raises ServiceDown."""
        self._kept, self._published = self._standing.owners(), owners(self._redis)
        self._of = {**self._of, **self._kept}
        self._read_hosts()

    def decide(self, serial: str, said: Mapping[str, Device]) -> str:
        """Return the host that has the device of which these hosts say this; empty: nobody has it."""
        owner = self._of.get(serial, "")
        usable = [host for host, device in said.items() if device.state.health is not Health.OFFLINE]
        if owner and owner not in said:
            since = self._missed_at.setdefault(serial, time.monotonic())
            if time.monotonic() < since + keys.ANNOUNCE_TTL_S or self._keeps(owner, said):
                return owner
            owner = ""
        self._missed_at.pop(serial, None)
        if owner not in usable and (usable or not owner):
            owner = min(usable or said, key=self._rank, default="")
        if owner:
            self._of[serial] = owner
        else:
            self._of.pop(serial, None)
        return owner

    def _keeps(self, owner: str, said: Collection[str]) -> bool:
        """Tell whether an owner that says nothing of its device keeps it from those who do."""
        row = self._hosts.get(owner)
        in_service = row is None or row.state is HostState.ACTIVE
        return owner not in self.alive and in_service and all(self._is_foreign(host) for host in said)

    def _is_foreign(self, host: str) -> bool:
        """Tell whether it came with a secret of its own: the farm's own machine has none."""
        return host in self._hosts and bool(self._hosts[host].secret_sha256)

    def _rank(self, host: str) -> tuple[bool, float, str]:
        """Put the farm's own machine first, then the host that was added first: nobody had the device."""
        return self._is_foreign(host), self._hosts[host].since if host in self._hosts else 0.0, host

    def overdue(self, said: Container[str]) -> list[str]:
        """Return serials that another host may have by now: their owner says nothing of them, and it or others speak.

        Raises ServiceDown.
        """
        now = time.monotonic()
        late = [serial for serial, since in self._missed_at.items() if now >= since + keys.ANNOUNCE_TTL_S]
        found = [serial for serial in late if serial in said or self._of.get(serial) in self.alive]
        if found:
            self._read_hosts()
        return found

    def _read_hosts(self) -> None:
        self._hosts = {row.name: row for row in self._standing.hosts()}

    def publish(self) -> None:
        """Keep the decisions, then let the hosts know. Raises ServiceDown."""
        if new := _differences(self._of, self._kept):
            self._standing.own(new)
            self._kept = dict(self._of)
        if new := _differences(self._of, self._published):
            publish(self._redis, new)
            self._published = dict(self._of)


def _differences(now: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Serial -> host, for those whose host is another one; empty where there is none any more."""
    if now == before:
        return {}
    return {of: now.get(of, "") for of in now.keys() | before.keys() if now.get(of) != before.get(of)}
