"""Acts on devices: hold them for a person, release them, restore what a crash left changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from orchestrator.coordination.leases import Leases
from orchestrator.ledger import Hold
from orchestrator.model.errors import DeviceBusy, SpecError, UnknownName, Unsupported
from orchestrator.model.people import Role
from orchestrator.model.record import Outcome
from orchestrator.model.rights import Right

from .act import Acting, Done, PutBack, act, on_pages, some

OPERATES = Right(Role.OPERATE, of="farm")
HELD = "device_held"
"""The cause of attempts that give way to a hold."""


@dataclass(frozen=True)
class Running:
    """An attempt that a held device still has."""

    serial: str
    label: str


@dataclass(frozen=True)
class Held(Done):
    holds: list[Hold]
    running: list[Running]
    """Attempts that are finished first."""
    handed_back: list[Running]

    @property
    def on(self) -> str:
        return some([each.serial for each in self.holds])

    @property
    def lines(self) -> list[str]:
        return [
            *(f"{each.serial} is {each.said}" for each in self.holds),
            *(f"{each.label} on {each.serial} is finished first" for each in self.running),
            *(f"{each.label} on {each.serial} goes back into the queue" for each in self.handed_back),
        ]


@on_pages
@act(OPERATES)
def hold(
    acting: Acting,
    serials: Sequence[str],
    until: float | None = None,
    note: str = "",
    *,
    alone: bool = False,
    now: bool = False,
) -> Held:
    """Hold devices, all or none, until then (Unix time; None: until they are released) for who acts and what they
    submit. `alone`: not even for that. `now`: alone, and what runs there is tried again elsewhere and pays nothing.

    Raises SpecError where no device is named, UnknownName for one that no host announces and no experiment names,
    DeviceBusy where somebody else holds one, and with `now` ServiceDown where no farm runs.
    """
    ledger, wanted = acting.ledger, sorted(set(serials))
    if not wanted:
        raise SpecError("no device is named", remedy="name one or more; `farm devices` lists them")
    leases = Leases(acting.site.redis()) if now else None
    check_known(acting, wanted)
    take(acting, wanted, until, note, alone=alone or now)
    rows = [row for row in ledger.running() if row.serial in wanted]
    if leases is not None:
        for row in rows:
            ledger.end_attempt(row.job_id, row.attempt, Outcome.LOST, HELD)
            acting.effects.append(partial(leases.release, row.serial, row.token))  # its session then finds out
    running = [Running(row.serial, row.label) for row in rows]
    made = [each for each in ledger.standing.holds() if each.serial in wanted and not each.is_reserved]
    return Held(made, [] if now else running, running if now else [])


def take(acting: Acting, serials: Sequence[str], until: float | None, note: str, *, alone: bool) -> None:
    """Hold devices for who acts. Raises DeviceBusy where somebody else holds one, or has reserved it for that time."""
    check_free(acting.ledger.standing.hold(serials, acting.actor.who, until, note, alone=alone))


def check_free(others: Sequence[Hold]) -> None:
    """Raise DeviceBusy where there are holds of others."""
    if others:
        what, first = "; ".join(f"{other.serial} is {other.said}" for other in others), others[0]
        plain = not (first.is_to_come or first.is_pool)
        end = f"farm release {first.serial}" if plain else f"farm devices unreserve {first.id}"
        raise DeviceBusy(what, remedy=f"give another time, or ask {first.who}; `{end}` ends it")


def check_known(acting: Acting, serials: Sequence[str]) -> None:
    """Raise UnknownName for a device that no host announces and no experiment names."""
    inventory = acting.inventory()
    announced = [device.serial for device in inventory.devices()] if inventory is not None else []
    unknown = sorted(set(serials) - set(announced) - acting.ledger.standing.known_devices(serials))
    if unknown:
        there = f"there are: {', '.join(sorted(announced)) or 'none'}" if inventory else "no farm runs to ask"
        raise UnknownName(f"no device {', '.join(map(repr, unknown))} is known; {there}", remedy="farm devices")


@dataclass(frozen=True)
class Released(Done):
    released: str

    @property
    def lines(self) -> list[str]:
        return [f"{self.released} is released"]


@on_pages
@act(OPERATES)
def release(acting: Acting, name: str) -> Released:
    """Give a held device work again, or a device or host in quarantine; or take a phone of this host as it is that is
    sick because settings cannot be put back. Raises Unsupported where it is none of these."""
    its, phones = acting.ledger.standing, acting.site.phones
    kept = [each.serial for each in (*its.quarantined(), *its.quarantined_hosts())]
    kept += [each.serial for each in its.holds() if not each.is_pool]
    ended = [its.clear_quarantine(name), its.clear_host(name), its.end_hold(name)]
    with suppress(DeviceBusy):  # what a session has changed it puts back itself: nothing is left behind
        ended.append(phones is not None and phones.let_be(name))
    if not any(ended):
        known = f"these are: {', '.join(kept)}" if kept else "nothing is"
        raise Unsupported(f"{name!r} is neither held nor in quarantine; {known}", remedy="farm devices")
    return Released(name)


@dataclass(frozen=True)
class Restored(Done):
    restored: list[PutBack]

    @property
    def on(self) -> str:
        return some([each.serial for each in self.restored])

    @property
    def did(self) -> bool:
        return any(each.supply or each.settings for each in self.restored)

    @property
    def ok(self) -> bool:
        return not any(each.left for each in self.restored)

    @property
    def lines(self) -> list[str]:
        return [each.text for each in self.restored] or ["nothing is left to put back"]


@on_pages
@act(OPERATES)
def restore(acting: Acting, serials: Sequence[str] = ()) -> Restored:
    """Put back what a crash left changed on phones of this machine: these, or all. A device with a running session is
    left to it. Raises UnknownName where nothing is left on one."""
    phones = acting.site.phones
    left = phones.left_behind() if phones is not None else ()
    if unknown := [serial for serial in serials if serial not in left]:
        known = f"something is left on {', '.join(left)}" if left else "nothing is left on any device"
        raise UnknownName(
            f"nothing is left to put back on {', '.join(unknown)}; {known}",
            remedy="`farm restore`, on the device's host, puts back all that is left; `farm devices` lists the devices",
        )
    return Restored([*phones.restore(serials or left)] if phones is not None else [])
