"""Hold devices for a program: for as long as it lives, and no longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from orchestrator.ledger import Hold, Ledger
from orchestrator.model.errors import ServiceDown
from orchestrator.model.rights import Actor

from .act import Acting, Site, some
from .devices import hold, release, take

HOLD_S = 60.0
"""The time after which a dead run's devices are free again; a run that lives says so four times as often."""


@contextmanager
def held(site: Site, actor: Actor, serials: Sequence[str], note: str) -> Iterator[None]:
    """The devices get no jobs while a `with` block lasts, not even this user's; a hold of theirs that lasts longer
    than `HOLD_S` is the same again afterwards, and any other, as of a run that died, is taken over.

    Should this process die, they are free again after `HOLD_S`. Raises DeviceBusy where somebody else holds one.
    """
    acting = Acting(site, actor)
    ledger, who = acting.ledger, actor.who
    lasts = time.time() + HOLD_S
    own = [each for each in _mine(ledger, who) if each.serial in serials]
    mine = [each for each in own if each.until is None or each.until > lasts]
    fresh = sorted(set(serials) - {each.serial for each in mine})
    with ledger.together():
        if fresh:
            take(acting, fresh, time.time() + HOLD_S, note, alone=True)
            ledger.audit.note(actor, hold.__name__, some(fresh), f"held while a program runs: {note}")
    for each in mine:
        take(acting, [each.serial], each.until, each.note, alone=True)
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
            _end(site, actor, renewal.still_held())
            kept = {hold.serial for hold in _mine(ledger, who)}
            for each in mine:
                if each.serial in kept:
                    ledger.standing.hold([each.serial], who, each.until, each.note)


def _end(site: Site, actor: Actor, serials: Sequence[str]) -> None:
    """End holds; a quarantine that began meanwhile goes on."""
    ledger = Acting(site, actor).ledger
    with ledger.together():
        if ended := [serial for serial in serials if ledger.standing.end_hold(serial)]:
            ledger.audit.note(actor, release.__name__, some(ended), "the program that held it has ended")


def _mine(ledger: Ledger, who: str) -> list[Hold]:
    """Return what somebody holds; what was reserved for them is beside that."""
    return [each for each in ledger.standing.holds() if each.who == who and not each.is_reserved]


class Renewal:
    """Holds that are to last. One that somebody released stays released; one that ended because the ledger was away for
    longer than `HOLD_S` is taken again, where nobody else has taken the device since."""

    def __init__(self, ledger: Ledger, serials: Sequence[str], who: str, note: str) -> None:
        self._ledger, self._kept, self._who, self._note = ledger, list(serials), who, note
        self.until = time.time() + HOLD_S
        """Unix time at which the holds end, as far as this knows."""

    def renew(self) -> None:
        """Raises ServiceDown."""
        holds = {hold.serial: hold.who for hold in self._ledger.standing.holds() if not hold.is_reserved}
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
        return [hold.serial for hold in _mine(self._ledger, self._who) if hold.serial in self._kept]
