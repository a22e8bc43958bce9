"""Switch radios off for the block.

`cmd connectivity airplane-mode` (Android 11 and later) is the only shell command that really switches them: writing the
setting alone reads back as on and leaves the radios up. A phone that is reached over Wi-Fi would cut itself off.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.model.errors import ConditionNotMet, Unsupported
from orchestrator.model.experiment import Conditions
from workers.connection.addresses import over_network
from workers.connection.base import DeviceConnection

from .base import Held


class AirplaneMode:
    permission = "airplane_mode"

    def wanted(self, conditions: Conditions) -> str:
        return "enabled" if conditions.airplane_mode else ""

    def check(self, connection: DeviceConnection) -> None:
        if over_network(connection.address):
            raise Unsupported(
                "airplane mode would cut the network by which the phone is reached",
                device=connection.serial,
                remedy="connect it by USB, or leave out conditions.airplane_mode",
            )
        if self._read(connection) not in ("enabled", "disabled"):
            raise Unsupported(
                "airplane mode cannot be switched: `cmd connectivity airplane-mode` says nothing",
                device=connection.serial,
                remedy="Android 11 or later is needed: leave out conditions.airplane_mode, or switch it by hand",
            )

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        return {"airplane_mode": self._read(connection)}

    def prepare(self, connection: DeviceConnection) -> Held:
        self.check(connection)
        self._switch(connection, "enable")
        found = self._read(connection)
        if found != "enabled":
            raise ConditionNotMet(
                f"airplane mode was switched on, but reads `{found}`",
                device=connection.serial,
                remedy="switch it on by hand",
            )
        return Held(found)

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None:
        if saved.get("airplane_mode") != "enabled":
            self._switch(connection, "disable")

    def _read(self, connection: DeviceConnection) -> str:
        result = connection.shell(["cmd", "connectivity", "airplane-mode"])
        return result.stdout.decode(errors="replace").strip()

    def _switch(self, connection: DeviceConnection, verb: str) -> None:
        result = connection.shell(["cmd", "connectivity", "airplane-mode", verb])
        if result.code != 0:
            raise Unsupported(
                f"airplane mode cannot be switched: {result.stderr.decode(errors='replace').strip()[:200]}",
                device=connection.serial,
                remedy="Android 11 or later is needed: leave out conditions.airplane_mode, or switch it by hand",
            )
