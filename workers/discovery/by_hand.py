"""Run a command on a phone of this host for a person, while no session has it."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.system.config import Settings
from workers.connection.adb import server_of
from workers.connection.base import ShellResult
from workers.devices.device_lock import device_lock
from workers.devices.lookup import find_phone
from workers.session.owner import claimant_of, keeper_of, refuse

LOCK_WAIT_S = 2.0


def run_by_hand(settings: Settings, serial: str, argv: Sequence[str], deadline_s: float) -> ShellResult:
    """Run it; no session begins meanwhile. Raises DeviceBusy, HeldElsewhere, TransportLost, DeviceSlow."""
    with device_lock(settings.state, serial, wait_s=LOCK_WAIT_S):
        connection = find_phone(serial, server_of(settings))
        if keeper := keeper_of(connection, claimant_of(settings.state, settings.host)):
            raise refuse(connection, keeper)
        return connection.shell(argv, deadline_s=deadline_s)
