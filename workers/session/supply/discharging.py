"""Wait until a phone runs from its battery."""

from __future__ import annotations

import time
from collections.abc import Callable

from orchestrator.model.errors import TransientError
from workers.connection.base import DeviceConnection
from workers.devices.probe import read_state

DISCHARGING_S = {"any": 0.0, "discharging": 15.0, "cut": 30.0}
"""Condition of the supply -> the longest wait until the battery discharges; gauges are late by some seconds."""


class PowerContaminated(TransientError):
    """The phone did not begin to run from its battery within the time that it had."""

    cause = "power_contaminated"

    def __init__(self, message: str, *, device: str) -> None:
        remedy = "check that the supply is really cut: some hubs switch the data lines and leave the power on"
        super().__init__(message, device=device, remedy=remedy)


def await_discharging(connection: DeviceConnection, check: Callable[[], None], wait_s: float) -> bool:
    """Return whether the phone says that no supply is connected, at once or within the wait."""
    end = time.monotonic() + wait_s
    while read_state(connection, "phone").charging:
        if time.monotonic() >= end:
            return False
        check()
        time.sleep(0.5)
    return True
