"""List the devices that may be given work: those announced, without those that a person, a fault or a host bars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from orchestrator.ledger import Hold, HostRow, HostState, Ledger, Quarantine
from orchestrator.model.device import Device, Health
from orchestrator.model.live.announcement import HostAnnouncement
from orchestrator.model.live.since import OLDEST_PROTOCOL, PROTOCOL, unknown

from .notes import with_notes


def devices_for_work(
    announced: Sequence[Device],
    hosts: Iterable[HostAnnouncement],
    ledger: Ledger,
    seen: frozenset[str] | None = None,
) -> list[Device]:
    """Devices as placement sees them: of a host that gets no work, held, in quarantine, or at rest after a loss; each
    with what people say of it, as `with_notes` does.

    Raises ServiceDown.
    """
    return with_notes(barred(hosts, ledger).applied(announced), ledger.standing.noted(), seen)


@dataclass(frozen=True)
class Barred:
    """The bars that keep devices from work although they are announced as ready."""

    closed: Mapping[str, dict[str, Any]]
    """The closed hosts by name, see `closed_hosts`."""
    quarantined: tuple[Quarantine, ...]
    quarantined_hosts: tuple[Quarantine, ...]
    resting: Mapping[str, float]
    """Device -> Unix time until which it rests."""
    holds: tuple[Hold, ...] = ()
    """Holds that have begun."""
    reserved: tuple[Hold, ...] = ()
    """Holds that are to come."""
    unknown: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Hosts of an older protocol -> the words of experiments that they do not know."""

    def applied(self, announced: Sequence[Device]) -> list[Device]:
        """Devices as placement sees them, in the order given."""
        quarantined = [*self.quarantined, *_on_hosts(announced, self.quarantined_hosts)]
        held = {hold.serial: _held(hold) for hold in sorted(self.holds, key=lambda each: not each.is_pool)}
        usable = announced
        if self.unknown:
            none = frozenset[str]()
            usable = [d.model_copy(update={"unknown": self.unknown.get(d.facts.host, none)}) for d in announced]
        if held or self.closed:
            usable = [
                _changed(_changed(device, held.get(device.serial)), self.closed.get(device.facts.host))
                for device in usable
            ]
        return with_quarantine(usable, self.resting, quarantined)

    def held_for(self, announced: Mapping[str, Device]) -> dict[str, tuple[tuple[Hold, ...], Device]]:
        """Devices that somebody holds -> the holds, and the device as it is for whom they admit."""
        open_to = _by_device(each for each in self.holds if each.serial in announced)
        freed = replace(self, holds=()).applied([announced[serial] for serial in open_to])
        return {device.serial: (open_to[device.serial], device) for device in freed}

    @property
    def to_come(self) -> dict[str, tuple[Hold, ...]]:
        """Devices that are reserved for later -> the reservations."""
        return _by_device(self.reserved)


def barred(hosts: Iterable[HostAnnouncement], ledger: Ledger) -> Barred:
    """Raises ServiceDown."""
    known, found = list(hosts), ledger.standing.bars()
    closed = closed_hosts(known, found.hosts, found.faults)
    begun = tuple(each for each in found.holds if not each.is_to_come)
    to_come = tuple(each for each in found.holds if each.is_to_come)
    older = {host.host: words for host in known if (words := unknown(host.protocol))}
    return Barred(closed, found.quarantined, found.quarantined_hosts, found.resting, begun, to_come, older)


def closed_hosts(
    hosts: Iterable[HostAnnouncement], known: Iterable[HostRow], faults: Mapping[str, float]
) -> dict[str, dict[str, Any]]:
    """Hosts that get no work -> what follows for the state of their devices that are ready, with why and what to do.

    `faults`: host -> Unix time of its latest. The announcement of a host that has died is believed for some seconds
    more; after a session was lost by its silence, it must speak first.
    """
    closed: dict[str, dict[str, Any]] = {}
    for host in hosts:
        if why := misfit(host):
            closed[host.host] = {"health": Health.UNFIT, "reason": why}
        elif host.seen_at <= faults.get(host.host, -inf):
            why = f"its host {host.host} has said nothing since it lost a session; it gets work as soon as it does"
            closed[host.host] = {"health": Health.OFFLINE, "reason": why}
    for row in known:
        if row.state is HostState.DRAINING:
            why = f"host {row.name} is being drained; `farm host resume {row.name}` gives it work again"
            closed[row.name] = {"health": Health.DRAINING, "reason": why}
        elif row.state is HostState.REMOVED:
            why = f"host {row.name} was removed; end its worker, or `farm host resume {row.name}`"
            closed[row.name] = {"health": Health.DRAINING, "reason": why}
    return closed


def misfit(host: HostAnnouncement) -> str:
    """Return why this farm does not work with the worker of a host, and what to do; empty: it does."""
    protocol = host.protocol
    if OLDEST_PROTOCOL <= protocol <= PROTOCOL:
        return ""
    known = str(PROTOCOL) if OLDEST_PROTOCOL == PROTOCOL else f"{OLDEST_PROTOCOL} to {PROTOCOL}"
    there = f"host {host.host} runs pocketfarm {host.version or 'of an older version'} with worker protocol {protocol}"
    mend = "update the scheduler's machine" if protocol > PROTOCOL else f"update pocketfarm on {host.host}"
    return f"{there}, this farm works with {known}: {mend}"


def _on_hosts(announced: Sequence[Device], hosts: Iterable[Quarantine]) -> Iterator[Quarantine]:
    """The quarantine of a host is that of its devices; it ends for all at once."""
    for host in hosts:
        reason = f"its host {host.serial} had {host.reason}"
        for device in announced:
            if device.facts.host == host.serial:
                yield Quarantine(device.serial, reason, host.since, host.until, released_by=host.serial)


def with_quarantine(
    announced: Sequence[Device], resting: Mapping[str, float], quarantined: Iterable[Quarantine]
) -> list[Device]:
    """`resting`: device -> Unix time. One that is not ready anyway stays what it is."""
    changes: dict[str, dict[str, Any]] = {}
    for serial, until in resting.items():
        changes[serial] = {"ready_at": until, "reason": "resting after a lost attempt"}
    for held in quarantined:
        changes[held.serial] = {"health": Health.QUARANTINED, "reason": _quarantine_text(held), "ready_at": held.until}
    return [_changed(device, changes.get(device.serial)) for device in announced] if changes else list(announced)


def has_recovered(held: Quarantine, announced: Mapping[str, Device]) -> bool:
    """Return whether a device has served its term and passed its host's check since.

    A host reads an idle phone's state every few seconds, through its agent's folder and shell; a phone that does not
    answer as it should is not announced as ready.
    """
    device = announced.get(held.serial)
    return device is not None and device.state.health is Health.READY and device.state.seen_at >= held.until


def _by_device(holds: Iterable[Hold]) -> dict[str, tuple[Hold, ...]]:
    found: dict[str, tuple[Hold, ...]] = {}
    for each in holds:
        found[each.serial] = (*found.get(each.serial, ()), each)
    return found


def _held(hold: Hold) -> dict[str, Any]:
    end = f"farm devices unreserve {hold.id}" if hold.is_pool else f"farm release {hold.serial}"
    reason = f"{hold.said if hold.is_reserved else hold.text}; `{end}` ends it"
    return {"health": Health.HELD, "reason": reason, "ready_at": hold.until}


def _quarantine_text(held: Quarantine) -> str:
    return f"{held.reason}; {held.remedy}"


def _changed(device: Device, changes: dict[str, Any] | None) -> Device:
    if not changes or device.state.health is not Health.READY:
        return device
    return device.model_copy(update={"state": device.state.model_copy(update=changes)})
