"""Hold devices for a person: they get no work of others, and give back what they have where they are wanted now."""

from __future__ import annotations

import getpass
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from redis import Redis

from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.errors import DeviceBusy, ServiceDown, UnknownName, Unsupported
from orchestrator.ledger import Ledger
from orchestrator.model.record import Outcome

CAUSE = "device_held"
HOLD_S = 60.0
"""The time after which a dead run's devices are free again; a run that lives says so four times as often."""


@dataclass(frozen=True)
class Running:
    """An attempt that a held device still has."""

    serial: str
    label: str


def check_known(serials: Collection[str], ledger: Ledger, redis: Redis | None) -> None:
    """Raises UnknownName for a device that no host announces and no experiment names."""
    announced = [device.serial for device in Inventory(redis).devices()] if redis is not None else []
    unknown = sorted(set(serials) - set(announced) - ledger.standing.known_devices(serials))
    if unknown:
        there = f"there are: {', '.join(sorted(announced)) or 'none'}" if redis is not None else "no farm runs to ask"
        raise UnknownName(f"no device {', '.join(map(repr, unknown))} is known; {there}", remedy="farm devices")


def hold(
    ledger: Ledger, serials: Collection[str], who: str, until: float | None, note: str, *, alone: bool = False
) -> Sequence[Running]:
    """Hold these devices, all or none, `alone` from one's own experiments too; what they still run. Raises DeviceBusy
    where somebody else holds one."""
    _take(ledger, serials, who, until, note, alone=alone)
    return [Running(row.serial, row.label) for row in ledger.running() if row.serial in serials]


def _take(
    ledger: Ledger, serials: Collection[str], who: str, until: float | None, note: str, *, alone: bool = False
) -> None:
    if others := ledger.standing.hold(serials, who, until, note, alone=alone):
        what = "; ".join(f"{other.serial} is held {other.text}" for other in others)
        raise DeviceBusy(what, remedy=f"ask {others[0].who}; `farm release {others[0].serial}` ends it")


@contextmanager
def held(ledger: Ledger, serials: Sequence[str], note: str) -> Iterator[None]:
    """The devices get no jobs while a `with` block lasts, not even this user's; a hold of theirs that lasts longer
    than `HOLD_S` is the same again afterwards, and any other, as of a run that died, is taken over.

    Should this process die, they are free again after `HOLD_S`. Raises DeviceBusy where somebody else holds one.
    """
    who = getpass.getuser()
    lasts = time.time() + HOLD_S
    own = [hold for hold in ledger.standing.holds() if hold.who == who and hold.serial in serials]
    mine = [hold for hold in own if hold.until is None or hold.until > lasts]
    fresh = sorted(set(serials) - {hold.serial for hold in mine})
    if fresh:
        _take(ledger, fresh, who, time.time() + HOLD_S, note, alone=True)
    for each in mine:
        _take(ledger, [each.serial], who, each.until, each.note, alone=True)
    renewal = Renewal(ledger, fresh, who, note)
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(HOLD_S / 4):
            with suppress(ServiceDown):  # the next time
                renewal.renew()

    renewing = threading.Thread(target=go_on, name="hold", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        over.set()
        renewing.join()
        with suppress(ServiceDown):  # they end by themselves; what was measured must not be lost by it
            for serial in renewal.still_held():
                ledger.standing.end_hold(serial)
            kept = {hold.serial for hold in ledger.standing.holds() if hold.who == who}
            for each in mine:
                if each.serial in kept:
                    ledger.standing.hold([each.serial], who, each.until, each.note)


class Renewal:
    """Holds that are to last. One that somebody released stays released; one that ended because the ledger was away for
    longer than `HOLD_S` is taken again, where nobody else has taken the device since."""

    def __init__(self, ledger: Ledger, serials: Sequence[str], who: str, note: str) -> None:
        self._ledger, self._kept, self._who, self._note = ledger, list(serials), who, note
        self.until = time.time() + HOLD_S
        """Unix time at which the holds end, as far as this knows."""

    def renew(self) -> None:
        """Raises ServiceDown."""
        holds = {hold.serial: hold.who for hold in self._ledger.standing.holds()}
        if time.time() < self.until:
            self._kept = [serial for serial in self._kept if holds.get(serial) == self._who]
            wanted = self._kept
        else:
            wanted = [serial for serial in self._kept if holds.get(serial, self._who) == self._who]
        until = time.time() + HOLD_S
        if wanted and not self._ledger.standing.hold(wanted, self._who, until, self._note, alone=True):
            self.until = until

    def still_held(self) -> list[str]:
        """Raises ServiceDown."""
        found = self._ledger.standing.holds()
        return [hold.serial for hold in found if hold.who == self._who and hold.serial in self._kept]


def release(ledger: Ledger, state: Path, name: str) -> None:
    """Give a held device work again, or a device or host in quarantine; or take a phone of this host as it is that is
    sick because settings cannot be put back. Raises Unsupported where it is none of these."""
    from workers.discovery.crash_recovery import let_be

    its = ledger.standing
    kept = [each.serial for each in (*its.quarantined(), *its.quarantined_hosts())]
    kept += [each.serial for each in its.holds()]
    ended = [its.clear_quarantine(name), its.clear_host(name), its.end_hold(name)]
    with suppress(DeviceBusy):  # what a session has changed it puts back itself: nothing is left behind
        ended.append(let_be(state, name))
    if not any(ended):
        known = f"these are: {', '.join(kept)}" if kept else "nothing is"
        raise Unsupported(f"{name!r} is neither held nor in quarantine; {known}", remedy="farm devices")


def hand_back(ledger: Ledger, redis: Redis, serials: Collection[str]) -> None:
    """End the attempts on these devices; their jobs are tried again elsewhere, and pay nothing for it."""
    leases = Leases(redis)
    for row in [row for row in ledger.running() if row.serial in serials]:
        leases.release(row.serial, row.token)  # its session finds that out before its next step
        ledger.end_attempt(row.job_id, row.attempt, Outcome.LOST, CAUSE)
