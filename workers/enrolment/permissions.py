"""Find out what the shell user of a phone may do, without changing anything."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.model.errors import Unsupported
from workers.connection.base import DeviceConnection
from workers.session.conditions import SETTINGS
from workers.session.conditions.root import root_shell


def probe_permissions(connection: DeviceConnection) -> dict[str, bool]:
    """Permission -> whether the shell has it: of a setting, whether a session would switch it. Raises TransportLost."""
    return {
        "root": _may(lambda: root_shell(connection, "enrolment")),
        **{each.permission: _may(each.check, connection) for each in SETTINGS.values() if each.permission},
        "perfetto": connection.shell(["sh", "-c", "command -v perfetto"]).code == 0,
    }


def _may(check: Callable[..., object], *given: object) -> bool:
    try:
        check(*given)
    except Unsupported:
        return False
    return True
