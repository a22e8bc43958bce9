"""Phones that many tests share, put right before each of them: no fault, connected once, and answering.

One failing test must not spoil the next, nor its own second try; what a test leaves behind is mended here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.model.errors import FarmError
from tests.servers import PrivateAdb, adb_key, required
from tests.waiting import LIMIT_S, eventually
from virtual_phones import launch
from virtual_phones.control import ControlClient
from virtual_phones.faults import Charging
from virtual_phones.launch import VirtualPhones
from workers.connection.adb import AdbConnection, AdbServer


@contextmanager
def start_phones(state: Path, profiles: Sequence[str], **options: Any) -> Iterator[VirtualPhones]:
    """Virtual phones that let the private adb servers of the tests in."""
    with launch.start_phones(state, profiles, key=adb_key().with_suffix(".pub"), **options) as running:
        yield running


def mend(adb: PrivateAdb, control: ControlClient, addresses: Sequence[str]) -> None:
    """Undo whatever a test left: a dead server, faults, phones that are away, others that are connected."""
    soothe(control)
    for last in (False, False, True):  # adb 29 may abort where connects and disconnects cross
        adb.mend()
        try:
            connect_only(AdbServer(adb.port, required("adb")), addresses)
            return
        except FarmError:
            if last:
                raise


def soothe(control: ControlClient) -> None:
    """Take back every fault, and the charger."""
    for phone in control.clear():
        if phone.charging:
            control.fault(phone.serial, Charging(on=False))


def connect_only(server: AdbServer, addresses: Sequence[str]) -> None:
    """Have these phones listed and answering, and no other one listed."""
    for row in server.devices():
        if row.address not in addresses:
            disconnect(server, row.address)
    for address in addresses:
        connect(server, address)


def connect(server: AdbServer, address: str) -> None:
    """Returns once the phone answers; fails after `LIMIT_S`. The adb server's own next try may be 10 s away."""
    end = time.monotonic() + LIMIT_S
    while not _answers(server, address):
        assert time.monotonic() < end, f"{address} did not come back: {server.devices()}"
        try:
            server.disconnect(address)
            server.connect(address)
        except FarmError:  # it listens in a moment
            time.sleep(0.1)


def disconnect(server: AdbServer, address: str) -> None:
    """Returns once the phone is no longer listed: adb shows one that it has just dropped as offline for a moment."""

    def is_gone() -> bool:
        listed = any(row.address == address for row in server.devices())
        if listed:
            server.disconnect(address)
        return not listed

    eventually(is_gone, what=lambda: f"{address} stays listed: {server.devices()}")


def _answers(server: AdbServer, address: str) -> bool:
    """Return whether it is usable now; a row may say `device` for a moment longer than the phone is there."""
    if not any(row.address == address and row.state == "device" for row in server.devices()):
        return False
    try:
        return AdbConnection(address, server).shell(["true"], deadline_s=10.0).code == 0
    except FarmError:
        return False
