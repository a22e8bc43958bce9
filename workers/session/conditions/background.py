"""End background processes before the block. Those that the system starts again later are not ended."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.model.errors import Unsupported
from orchestrator.model.experiment import Conditions
from orchestrator.model.quantity import counted
from workers.connection.base import DeviceConnection

from .base import Held


class BackgroundStopped:
    permission = ""

    def wanted(self, conditions: Conditions) -> str:
        return "ended" if conditions.background_stopped else ""

    def check(self, connection: DeviceConnection) -> None:
        if connection.shell(["sh", "-c", "command -v am"]).code != 0:
            raise Unsupported(
                "it has no `am`, so background processes cannot be ended",
                device=connection.serial,
                remedy="leave out conditions.background_stopped",
            )

    def save(self, connection: DeviceConnection) -> dict[str, str]:
        return {"processes": count_apps(connection)}

    def prepare(self, connection: DeviceConnection) -> Held:
        before = count_apps(connection)
        result = connection.shell(["am", "kill-all"], deadline_s=30.0)
        if result.code != 0:
            raise Unsupported(
                f"background processes cannot be ended: {result.stderr.decode(errors='replace').strip()[:200]}",
                device=connection.serial,
                remedy="leave out conditions.background_stopped",
            )
        after = count_apps(connection)
        return Held(after, proven=bool(before and after) and int(after.split()[0]) <= int(before.split()[0]))

    def restore(self, connection: DeviceConnection, saved: Mapping[str, str]) -> None:
        """Leave processes alone: what was ended starts again when it is wanted."""


def count_apps(connection: DeviceConnection) -> str:
    """`12 processes of apps`; empty where the phone does not list processes by user. Apps have users like `u0_a123`."""
    result = connection.shell(["ps", "-A", "-o", "USER"])
    head, _, rest = result.stdout.decode(errors="replace").partition("\n")
    if result.code != 0 or head.strip() != "USER":  # Android 7 takes the words for a name, and lists what is called so
        return ""
    users = rest.split()
    return f"{counted(sum(user.startswith('u') and '_a' in user for user in users), 'process', 'processes')} of apps"
