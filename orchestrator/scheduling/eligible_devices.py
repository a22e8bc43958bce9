"""List the devices that may be given work: those announced, without those at rest or in quarantine with their host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.ledger import Ledger, Quarantine
from orchestrator.model.device import Device, Health


def devices_for_work(announced: Sequence[Device], ledger: Ledger) -> list[Device]:
    """Devices as placement sees them: in quarantine, or at rest after a loss. Raises ServiceDown."""
    held = [*ledger.quarantined(), *_on_hosts(announced, ledger.quarantined_hosts())]
    return with_quarantine(announced, ledger.resting(), held)


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
    return [_changed(device, changes.get(device.serial)) for device in announced]


def has_recovered(held: Quarantine, announced: Mapping[str, Device]) -> bool:
    """Whether a device has served its term and passed its host's check since.

    A host reads an idle phone's state every few seconds, through its agent's folder and shell; a phone that does not
    answer as it should is not announced as ready.
    """
    device = announced.get(held.serial)
    return device is not None and device.state.health is Health.READY and device.state.seen_at >= held.until


def _quarantine_text(held: Quarantine) -> str:
    return f"{held.reason}; {held.remedy}"


def _changed(device: Device, changes: dict[str, Any] | None) -> Device:
    if not changes or device.state.health is not Health.READY:
        return device
    return device.model_copy(update={"state": device.state.model_copy(update=changes)})
