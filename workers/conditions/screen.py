"""Manual minimum brightness, and no time-out, for the block."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.errors import ConditionNotMet, Unsupported
from orchestrator.model.experiment import Conditions
from workers.device.base import DeviceConnection
from workers.install import run

from .base import Held

DIMMED = {"screen_brightness_mode": "0", "screen_brightness": "1", "screen_off_timeout": "2147483647"}


class ScreenDimmed:
    def wanted(self, conditions: Conditions) -> str:
        return "lowest brightness, no time-out" if conditions.screen_dimmed else ""

    def check(self, connection: DeviceConnection) -> None:
        if connection.shell(["settings", "get", "system", "screen_brightness"]).code != 0:
            raise Unsupported(
                "the shell cannot read its settings",
                device=connection.serial,
                remedy="leave out conditions.screen_dimmed",
            )

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        return {name: self._read(connection, name) for name in DIMMED}

    def prepare(self, connection: DeviceConnection) -> Held:
        for name, value in DIMMED.items():
            run(connection, "settings", "put", "system", name, value)
        found = self.save(connection)
        if found != DIMMED:
            raise ConditionNotMet(
                f"the screen's settings were written, but read {found}",
                device=connection.serial,
                remedy="allow the shell to write settings in the developer options",
            )
        return Held(", ".join(f"{name}={value}" for name, value in found.items()))

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None:
        for name in DIMMED.keys() & saved.keys():
            if saved[name] == "null":  # Android's word for a setting that was never made
                run(connection, "settings", "delete", "system", name)
            else:
                run(connection, "settings", "put", "system", name, saved[name])

    def _read(self, connection: DeviceConnection, name: str) -> str:
        return run(connection, "settings", "get", "system", name).strip()
