"""Switch automatic synchronisation off for the block.

The system keeps this switch in files of its own, and no shell command changes it: `settings put global auto_sync` is
read back as written while synchronisation goes on. What counts is the word of the sync manager (`dumpsys content`).
A phone that says `on` has to be switched by hand; one that says nothing gets the setting, and the record a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from orchestrator.model.errors import ConditionNotMet, Unsupported
from orchestrator.model.experiment import Conditions
from workers.connection.base import DeviceConnection

from .android_settings import UNSET, read_setting, write_setting
from .base import Held

SETTING = ("global", "auto_sync")
_MANAGER = re.compile(r"^\s*auto sync:((?: *u\d+=(?:true|false))+)", re.MULTILINE | re.IGNORECASE)


class SyncOff:
    permission = ""

    def wanted(self, conditions: Conditions) -> str:
        return "off" if conditions.sync_off else ""

    def check(self, connection: DeviceConnection) -> None:
        if manager_state(connection) == "on":
            raise Unsupported(
                "automatic synchronisation is on, and no shell command switches it",
                device=connection.serial,
                remedy="switch it off by hand (Settings, Accounts), or leave out conditions.sync_off",
            )

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        return {"auto_sync": read_setting(connection, *SETTING)}

    def prepare(self, connection: DeviceConnection) -> Held:
        self.check(connection)
        write_setting(connection, *SETTING, "0")
        found = read_setting(connection, *SETTING)
        if found != "0":
            raise ConditionNotMet(f"auto_sync was written as 0, but reads {found!r}", device=connection.serial)
        state = manager_state(connection)
        return Held(state or "setting auto_sync is 0", proven=state == "off")

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None:
        write_setting(connection, *SETTING, saved.get("auto_sync", UNSET))


def manager_state(connection: DeviceConnection) -> str:
    """`on`, `off`, or nothing where the sync manager does not tell."""
    result = connection.shell(["dumpsys", "content"], deadline_s=30.0)
    match = _MANAGER.search(result.stdout.decode(errors="replace"))
    if match is None:
        return ""
    return "on" if "true" in match[1] else "off"
