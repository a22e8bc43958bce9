"""Switch Bluetooth off for the session.

`svc bluetooth` asks the Bluetooth service, which takes a moment: `settings get global bluetooth_on` follows it.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.model.errors import ConditionNotMet, Unsupported
from orchestrator.model.experiment import Conditions
from workers.connection.base import DeviceConnection

from .android_settings import followed, read_setting
from .base import Held

SETTING = ("global", "bluetooth_on")
ON, OFF = "1", "0"
FIRST_SDK = 26
SWITCH_S = 5.0
"""The service takes about a second."""


class BluetoothOff:
    permission = "bluetooth"

    def wanted(self, conditions: Conditions) -> str:
        return "off" if conditions.bluetooth_off else ""

    def check(self, connection: DeviceConnection) -> None:
        if not has_switch(connection):
            raise _unsupported(connection, "the phone has no `svc` that does (Android 8 has)")
        found = read_setting(connection, *SETTING)
        if found not in (ON, OFF):
            raise _unsupported(connection, f"the setting bluetooth_on reads {found!r}: there is no Bluetooth service")

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        return {"bluetooth_on": read_setting(connection, *SETTING)}

    def prepare(self, connection: DeviceConnection) -> Held:
        self.check(connection)
        _switch(connection, "disable", OFF)
        return Held("off")

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None:
        if saved.get("bluetooth_on") == ON:
            _switch(connection, "enable", ON)


def has_switch(connection: DeviceConnection) -> bool:
    """Return whether `svc` switches Bluetooth: before Android 8 it takes the word, does nothing and ends with 0."""
    sdk = connection.shell(["getprop", "ro.build.version.sdk"]).stdout.strip()
    is_old = sdk.isdigit() and int(sdk) < FIRST_SDK
    return not is_old and connection.shell(["sh", "-c", "command -v svc"]).code == 0


def _switch(connection: DeviceConnection, verb: str, wanted: str) -> None:
    """Raises Unsupported where the shell may not, ConditionNotMet where the service does not follow."""
    result = connection.shell(["svc", "bluetooth", verb])
    if result.code != 0:
        said = (result.stderr or result.stdout).decode(errors="replace").strip()[:200]
        raise _unsupported(connection, said or f"`svc bluetooth {verb}` ends with status {result.code}")
    if (found := followed(connection, SETTING, wanted, SWITCH_S)) != wanted:
        raise ConditionNotMet(
            f"`svc bluetooth {verb}` was accepted, but bluetooth_on reads {found!r}",
            device=connection.serial,
            remedy=f"{verb} Bluetooth by hand",
        )


def _unsupported(connection: DeviceConnection, why: str) -> Unsupported:
    return Unsupported(
        f"Bluetooth cannot be switched: {why}",
        device=connection.serial,
        remedy="leave out conditions.bluetooth_off, and switch Bluetooth by hand",
    )
