"""Keep what devices were: a row of a device whenever it is not what it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, func, insert, select

from orchestrator.ledger.tables import DEVICE_HISTORY
from orchestrator.model.device import Device

MOST_OF_A_DEVICE = 500
"""Rows of a device; of more the second goes, since the first says how old it is here."""
MOST_OF_A_HOST = 1000
"""Devices of which a host wrote the newest row: none fills the table with names."""
LONGEST = 500


@dataclass(frozen=True)
class DeviceWas:
    """The lasting facts of a device from a moment on."""

    serial: str
    host: str
    seen_at: float
    """Unix time."""
    model: str
    build: str
    """`ro.build.fingerprint`, which has the release of Android too."""
    drivers: str
    battery_cycles: int | None
    """Full charges of the battery; None: it does not tell."""
    battery_health: str
    """The word of the kernel: `Good`, `Overheat`, `Dead` ...; empty: it does not tell."""

    def is_as(self, other: DeviceWas | None) -> bool:
        """Return whether another row says the same. Who does not tell now what was told before says nothing new."""
        if other is None or (self.model, self.build, self.drivers) != (other.model, other.build, other.drivers):
            return False
        cycles, health = self.battery_cycles or other.battery_cycles, self.battery_health or other.battery_health
        return (cycles, health) == (other.battery_cycles, other.battery_health)


def was_of(device: Device, now: float) -> DeviceWas:
    """Return what a device says of itself; its texts cut at `LONGEST` characters."""
    facts, last = device.facts, device.state.reading
    drivers = "; ".join(f"{each.api} {each.driver or each.version}" for each in facts.apis)
    return DeviceWas(
        serial=facts.serial,
        host=facts.host,
        seen_at=now,
        model=f"{facts.manufacturer} {facts.model}".strip()[:LONGEST],
        build=facts.fingerprint[:LONGEST],
        drivers=drivers[:LONGEST],
        battery_cycles=last.battery_cycles if last is not None else None,
        battery_health=last.battery_health[:40] if last is not None else "",
    )


def history(connection: Connection, serial: str = "") -> list[DeviceWas]:
    """Return the rows of a device, or of all, by serial and the newest first."""
    rows = select(DEVICE_HISTORY).order_by(DEVICE_HISTORY.c.serial, DEVICE_HISTORY.c.id.desc())
    found = connection.execute(rows.where(DEVICE_HISTORY.c.serial == serial) if serial else rows)
    return [_was(row._asdict()) for row in found]


def newest(connection: Connection) -> dict[str, DeviceWas]:
    """Return the newest row of each device, by serial."""
    last = select(func.max(DEVICE_HISTORY.c.id)).group_by(DEVICE_HISTORY.c.serial)
    found = connection.execute(select(DEVICE_HISTORY).where(DEVICE_HISTORY.c.id.in_(last)))
    return {row.serial: _was(row._asdict()) for row in found}


def add(connection: Connection, changed: Iterable[DeviceWas]) -> list[str]:
    """Add rows; return the serials for which their host has no room."""
    known, full, id_ = newest(connection), list[str](), DEVICE_HISTORY.c.id
    counts = Counter(was.host for was in known.values())
    for was in changed:
        if was.serial not in known and counts[was.host] >= MOST_OF_A_HOST:
            full.append(was.serial)
            continue
        counts[was.host] += was.serial not in known
        connection.execute(insert(DEVICE_HISTORY).values(asdict(was)))
        mine = select(id_).where(DEVICE_HISTORY.c.serial == was.serial).order_by(id_)
        if len(rows := list(connection.scalars(mine))) > MOST_OF_A_DEVICE:
            connection.execute(delete(DEVICE_HISTORY).where(id_ == rows[1]))
    return full


def _was(row: dict[str, object]) -> DeviceWas:
    return DeviceWas(**{name: value for name, value in row.items() if name != "id"})  # type: ignore[arg-type]
