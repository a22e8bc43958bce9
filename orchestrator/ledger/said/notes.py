"""Keep what people say of devices: labels, a note, an owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, delete, insert, select

from orchestrator.ledger.tables import DEVICE_NOTES
from orchestrator.model.device import Device, DeviceNote


def noted(connection: Connection) -> dict[str, DeviceNote]:
    """Return what was said, by serial."""
    rows = connection.execute(select(DEVICE_NOTES))
    return {row.serial: DeviceNote(labels=tuple(row.labels.split()), note=row.note, owner=row.owner) for row in rows}


def note(connection: Connection, said: Mapping[str, DeviceNote]) -> None:
    """Replace what was said of these devices."""
    connection.execute(delete(DEVICE_NOTES).where(DEVICE_NOTES.c.serial.in_(sorted(said))))
    rows = [
        {"serial": serial, "labels": " ".join(one.labels), "note": one.note, "owner": one.owner}
        for serial, one in said.items()
        if one != DeviceNote()
    ]
    if rows:
        connection.execute(insert(DEVICE_NOTES), rows)


def with_notes(
    devices: Iterable[Device], said: Mapping[str, DeviceNote], seen: frozenset[str] | None = None
) -> list[Device]:
    """Return devices with what people say of them, and nothing that a host announces in its place; of projects' labels
    with those of the projects that are `seen` (None: all)."""
    told = said if seen is None else {serial: one.seen_by(seen) for serial, one in said.items()}
    wanted = ((device, told.get(device.serial)) for device in devices)
    return [device if device.noted == one else device.model_copy(update={"noted": one}) for device, one in wanted]
