"""Hold devices for a person: they get no work, and give back what they have where they are wanted now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from redis import Redis

from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.errors import DeviceBusy, UnknownName, Unsupported
from orchestrator.ledger import Ledger
from orchestrator.model.record import Outcome

CAUSE = "device_held"


@dataclass(frozen=True)
class Running:
    """An attempt that a held device still has."""

    serial: str
    label: str


def check_known(serials: Collection[str], ledger: Ledger, redis: Redis | None) -> None:
    """Raises UnknownName for a device that no host announces and no experiment names."""
    announced = [device.serial for device in Inventory(redis).devices()] if redis is not None else []
    unknown = sorted(set(serials) - set(announced) - ledger.known_devices(serials))
    if unknown:
        there = f"there are: {', '.join(sorted(announced)) or 'none'}" if redis is not None else "no farm runs to ask"
        raise UnknownName(f"no device {', '.join(map(repr, unknown))} is known; {there}", remedy="farm devices")


def hold(ledger: Ledger, serials: Collection[str], who: str, until: float | None, note: str) -> Sequence[Running]:
    """Hold these devices, all or none; what they still run. Raises DeviceBusy where somebody else holds one."""
    others = ledger.hold(serials, who, until, note)
    if others:
        what = "; ".join(f"{other.serial} is held {other.text}" for other in others)
        raise DeviceBusy(what, remedy=f"ask {others[0].who}; `farm release {others[0].serial}` ends it")
    return [Running(row.serial, row.label) for row in ledger.running() if row.serial in serials]


def release(ledger: Ledger, state: Path, name: str) -> None:
    """Give a held device work again, or a device or host in quarantine; or take a phone of this host as it is that is
    sick because settings cannot be put back. Raises Unsupported where it is none of these."""
    from workers.crash_recovery import let_be

    kept = [each.serial for each in (*ledger.quarantined(), *ledger.quarantined_hosts())]
    kept += [each.serial for each in ledger.holds()]
    ended = [ledger.clear_quarantine(name), ledger.clear_host(name), let_be(state, name), ledger.end_hold(name)]
    if not any(ended):
        known = f"these are: {', '.join(kept)}" if kept else "no device or host is"
        raise Unsupported(f"{name!r} is neither held nor in quarantine; {known}", remedy="farm devices")


def hand_back(ledger: Ledger, redis: Redis, serials: Collection[str]) -> None:
    """End the attempts on these devices; their jobs are tried again elsewhere, and pay nothing for it."""
    leases = Leases(redis)
    for row in [row for row in ledger.running() if row.serial in serials]:
        leases.release(row.serial, row.token)  # its session finds that out before its next step
        ledger.end_attempt(row.job_id, row.attempt, Outcome.LOST, CAUSE)
