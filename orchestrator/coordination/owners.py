"""The host that has a device, where several announce one of its serial: the scheduler decides, and hosts read it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from redis import Redis

from orchestrator.model.device import Device, Health

from . import keys
from .client import translated


@translated
def owners(redis: Redis) -> dict[str, str]:
    """Return the host of each device, by serial, as the hosts read it."""
    found: dict[str, str] = redis.hgetall(keys.OWNERS)
    return found


@translated
def publish(redis: Redis, decided: Mapping[str, str]) -> None:
    """Let the hosts know of these decisions, by serial; empty: nobody has the device any more."""
    if kept := {serial: host for serial, host in decided.items() if host}:
        redis.hset(keys.OWNERS, mapping=kept)
    if gone := [serial for serial, host in decided.items() if not host]:
        redis.hdel(keys.OWNERS, *gone)


def in_one_place(announced: Iterable[Device], decided: Mapping[str, str]) -> list[Device]:
    """Return one device for each serial, by serial: that of the host that has it, which says who else announces it."""
    by_serial: dict[str, list[Device]] = defaultdict(list)
    for device in announced:
        by_serial[device.serial].append(device)
    return [_one(all_, decided.get(serial, "")) for serial, all_ in sorted(by_serial.items())]


def _one(announced: list[Device], owner: str) -> Device:
    first, *others = sorted(announced, key=lambda each: (each.facts.host != owner, each.state.health is Health.OFFLINE))
    rivals = [each.facts.host for each in others if each.state.health is not Health.OFFLINE]
    if owner and first.facts.host != owner:
        why = (
            f"device conflict: it is host {owner}'s, which says nothing of it; if it has moved for good, "
            f"run `farm host drain {owner}`"
        )
    elif rivals:
        why = (
            f"device conflict: host {rivals[0]} has a device of this serial too, and is refused; disconnect one of them"
        )
    else:
        return first
    reason = "; ".join(filter(None, (first.state.reason, why)))
    return first.model_copy(update={"state": first.state.model_copy(update={"reason": reason})})
