"""Put the devices of this host back as they were before a crash: cut supplies, changed settings."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.model.device import Device
from orchestrator.model.errors import DeviceBusy, FarmError
from orchestrator.system.config import Settings
from workers.connection.adb import server_of
from workers.connection.base import DeviceConnection
from workers.devices.device_lock import device_lock
from workers.devices.lookup import find_phone
from workers.session.owner import claimant_of, keeper_of, owned, refuse
from workers.session.saved_settings import SavedSettings, changed_phones, changed_settings, forget_changes
from workers.session.session import await_device
from workers.session.supply import SupplyJournal, cut_supplies

log = logging.getLogger(__name__)
LOCK_WAIT_S = 2.0
BACK_S = 20.0
"""The time that a phone may take to come back once its supply is on."""
FindConnection = Callable[[str], DeviceConnection]


@dataclass(frozen=True)
class Restored:
    """The changes put back on one device, and those that were not."""

    serial: str
    supply: bool
    """True if its supply was switched on."""
    settings: tuple[str, ...]
    """The settings put back, the last change first."""
    left: str = ""
    """The settings that could not be put back, and why; empty: all is well."""


def left_behind(state: Path) -> tuple[str, ...]:
    """Serials of the devices on which something is not put back, whoever works on them now."""
    return tuple(sorted({*cut_supplies(state), *changed_phones(state)}))


def left_changed(state: Path) -> dict[str, tuple[str, ...]]:
    """Device -> what a session changed on it and has not put back, sessions that go on included."""
    left: dict[str, tuple[str, ...]] = dict.fromkeys(cut_supplies(state), ("supply",))
    for serial, names in changed_settings(state).items():
        left[serial] = (*left.get(serial, ()), *names)
    return left


def with_left_changed(devices: Iterable[Device], state: Path, in_session: Container[str]) -> list[Device]:
    """The devices as they are announced, with what nobody has put back yet."""
    left = {serial: names for serial, names in left_changed(state).items() if serial not in in_session}
    return [
        device.model_copy(update={"state": device.state.model_copy(update={"left_changed": left[device.serial]})})
        if device.serial in left
        else device
        for device in devices
    ]


def put_back(settings: Settings, connection: DeviceConnection) -> tuple[str, ...]:
    """Put back what the journals of a phone name, its own and this host's; what that was. The caller holds the device's
    lock.

    Raises HeldElsewhere where another host has the phone, SettingsLeft, SupplyStuck, TransportLost.
    """
    supply = ("supply",) * SupplyJournal(settings.state, connection.serial).restore(connection)
    claimant = claimant_of(settings.state, settings.host)
    if keeper := keeper_of(connection, claimant):
        raise refuse(connection, keeper)
    saved = SavedSettings(settings.state, connection)
    if not saved.pending():
        return supply
    with owned(connection, claimant):
        return (*supply, *saved.restore())


def let_be(state: Path, serial: str) -> bool:
    """Forget what was left changed on a device, as a person says that it may work as it is; whether anything was.

    Raises DeviceBusy while a session holds it.
    """
    if serial not in changed_phones(state):
        return False
    with device_lock(state, serial, wait_s=LOCK_WAIT_S):
        return forget_changes(state, serial)


def restore_devices(settings: Settings, serials: Iterable[str], *, patient: bool = True) -> tuple[Restored, ...]:
    """Put back what the journals name, over this host's adb server. A device that a session holds is left to it.

    `patient`: wait for phones whose supply was just switched on.
    """
    server = server_of(settings)
    return tuple(_restore_device(settings, serial, lambda s: find_phone(s, server), patient) for serial in serials)


def restore_supplies(settings: Settings) -> None:
    """The first thing a worker does: a phone without its supply may not even be on adb. Raises nothing."""
    for done in restore_devices(settings, cut_supplies(settings.state), patient=False):
        log.warning("%s: supply left cut by a crash: %s", done.serial, done.left or "switched on")


def _restore_device(settings: Settings, serial: str, find: FindConnection, patient: bool) -> Restored:
    supply, names, state = False, tuple[str, ...](), settings.state
    try:
        with device_lock(state, serial, wait_s=LOCK_WAIT_S):
            supply = _supply(state, serial, find)
            if serial in changed_phones(state):
                names = _settings(settings, serial, find, BACK_S if supply and patient else 0.0)
    except DeviceBusy:
        return Restored(serial, supply, names, "a session works on the device, and puts its changes back at its end")
    except FarmError as e:
        remedy = f"; {e.remedy}" if e.remedy else ""
        return Restored(serial, supply, names, f"{e.args[0]}{remedy}")
    return Restored(serial, supply, names)


def _supply(state: Path, serial: str, find: FindConnection) -> bool:
    journal = SupplyJournal(state, serial)
    connection: DeviceConnection | None = None
    if journal.needs_device:
        with suppress(FarmError):
            connection = find(serial)
    return journal.restore(connection)


def _settings(settings: Settings, serial: str, find: FindConnection, wait_s: float) -> tuple[str, ...]:
    connection = _found(serial, find, wait_s)
    await_device(connection, lambda: None, wait_s)
    return put_back(settings, connection)


def _found(serial: str, find: FindConnection, wait_s: float) -> DeviceConnection:
    """Raises TransportLost where it is not there in time."""
    end = time.monotonic() + wait_s
    while True:
        try:
            return find(serial)
        except FarmError:
            if time.monotonic() >= end:
                raise
            time.sleep(0.5)
