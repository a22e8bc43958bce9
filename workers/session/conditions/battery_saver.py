"""Switch the battery saver off for the session: it lowers clocks, and ends what runs in the background.

`cmd power set-mode` asks the power service, which takes a moment: the setting `low_power` follows it.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.model.errors import ConditionNotMet, Unsupported
from orchestrator.model.experiment import Conditions
from workers.connection.base import DeviceConnection

from .android_settings import followed, read_setting
from .base import Held

SETTING = ("global", "low_power")
ON, OFF = "1", "0"
SWITCH_S = 5.0


class BatterySaverOff:
    permission = "battery_saver"

    def wanted(self, conditions: Conditions) -> str:
        return "off" if conditions.battery_saver_off else ""

    def check(self, connection: DeviceConnection) -> None:
        """The power service is asked for what is so already."""
        _set_mode(connection, ON if read_setting(connection, *SETTING) == ON else OFF)

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        return {"low_power": read_setting(connection, *SETTING)}

    def prepare(self, connection: DeviceConnection) -> Held:
        _set_mode(connection, OFF)
        if followed(connection, SETTING, OFF, SWITCH_S) == ON:  # a phone that never had it on tells `null`
            raise ConditionNotMet(
                "the battery saver was switched off, but low_power reads '1'",
                device=connection.serial,
                remedy="charge the phone, or switch the saver off by hand",
            )
        return Held("off")

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None:
        if saved.get("low_power") == ON:
            _set_mode(connection, ON)


def _set_mode(connection: DeviceConnection, mode: str) -> None:
    result = connection.shell(["cmd", "power", "set-mode", mode])
    if result.code != 0:
        said = (result.stderr or result.stdout).decode(errors="replace").strip()[:200]
        raise Unsupported(
            f"the battery saver cannot be switched: {said}",
            device=connection.serial,
            remedy="Android 9 or later is needed: leave out conditions.battery_saver_off, or switch it off by hand",
        )
