"""The host that has a device, where several announce one of its serial: the scheduler decides, and hosts read it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping

from redis import Redis

from orchestrator.model.device import Device, Health

from . import keys
from .client import translated


@translated
def owners(redis: Redis) -> dict[str, str]:
    """Serial -> host."""
    found: dict[str, str] = redis.hgetall(keys.OWNERS)
    return found


class Owners:
    """What the farm has decided. Who has a device keeps it while it says so, and is not offline; where it says nothing
    any more (Redis was wiped, its worker starts anew), for as long as an announcement holds."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._of: dict[str, str] = {}
        self._missed_at: dict[str, float] = {}
        """Serial -> since when its owner says nothing of it."""
        self._published: dict[str, str] = {}

    def read(self) -> None:
        """What Redis has is another scheduler's decision, or ours. Raises ServiceDown."""
        self._published = owners(self._redis)
        self._of = {**self._of, **{serial: host for serial, host in self._published.items() if keys.is_host(host)}}

    def decide(self, serial: str, said: Mapping[str, Device]) -> str:
        """The host that has the device of which these hosts say this; empty: nobody says anything."""
        owner = self._of.get(serial, "")
        usable = [host for host, device in said.items() if device.state.health is not Health.OFFLINE]
        if owner and owner not in said:
            if time.monotonic() < self._missed_at.setdefault(serial, time.monotonic()) + keys.ANNOUNCE_TTL_S:
                return owner
            owner = ""
        self._missed_at.pop(serial, None)
        if owner not in usable and (usable or not owner):
            owner = next(iter(usable or said), "")
        if owner:
            self._of[serial] = owner
        else:
            self._of.pop(serial, None)
        return owner

    @property
    def overdue(self) -> list[str]:
        """Serials whose owner has said nothing for so long that another host may have them."""
        now = time.monotonic()
        return [serial for serial, since in self._missed_at.items() if now >= since + keys.ANNOUNCE_TTL_S]

    @translated
    def publish(self) -> None:
        """Let the hosts know."""
        if changed := {serial: host for serial, host in self._of.items() if self._published.get(serial) != host}:
            self._redis.hset(keys.OWNERS, mapping=changed)
        if gone := self._published.keys() - self._of.keys():
            self._redis.hdel(keys.OWNERS, *gone)
        self._published = dict(self._of)


def in_one_place(announced: Iterable[Device], decided: Mapping[str, str]) -> list[Device]:
    """One for each serial, by serial: that of the host that has it, which says who announces it as well."""
    by_serial: dict[str, list[Device]] = defaultdict(list)
    for device in announced:
        by_serial[device.serial].append(device)
    return [_one(all_, decided.get(serial, "")) for serial, all_ in sorted(by_serial.items())]


def _one(announced: list[Device], owner: str) -> Device:
    first, *others = sorted(announced, key=lambda each: (each.facts.host != owner, each.state.health is Health.OFFLINE))
    rivals = [each.facts.host for each in others if each.state.health is not Health.OFFLINE]
    if not rivals:
        return first
    why = f"device conflict: host {rivals[0]} has a device of this serial too, and is refused; disconnect one of them"
    reason = "; ".join(filter(None, (first.state.reason, why)))
    return first.model_copy(update={"state": first.state.model_copy(update={"reason": reason})})
