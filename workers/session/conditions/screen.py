"""Set manual minimum brightness for the block. The time-out of the screen is up to `awake`."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.model.errors import ConditionNotMet, Unsupported
from orchestrator.model.experiment import Conditions
from workers.connection.base import DeviceConnection

from .android_settings import read_setting, write_setting, writing
from .base import Held

DIMMED = {"screen_brightness_mode": "0", "screen_brightness": "1"}


class ScreenDimmed:
    permission = "write_settings"

    def wanted(self, conditions: Conditions) -> str:
        return "lowest brightness" if conditions.screen_dimmed else ""

    def check(self, connection: DeviceConnection) -> None:
        value = read_setting(connection, "system", "screen_brightness")  # written as it is
        if not value or any(connection.shell(each).code for each in writing("system", "screen_brightness", value)):
            raise Unsupported(
                f"the shell cannot {'write' if value else 'read'} its settings",
                device=connection.serial,
                remedy="allow it in the developer options, or leave out conditions.screen_dimmed",
            )

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        return {name: read_setting(connection, "system", name) for name in DIMMED}

    def prepare(self, connection: DeviceConnection) -> Held:
        for name, value in DIMMED.items():
            write_setting(connection, "system", name, value)
        found = self.save(connection)
        if found != DIMMED:
            raise ConditionNotMet(
                f"the screen's settings were written, but read {found}",
                device=connection.serial,
                remedy="allow the shell to write settings in the developer options",
            )
        return Held(", ".join(f"{name}={value}" for name, value in found.items()))

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None:
        for name, value in saved.items():
            write_setting(connection, "system", name, value)
