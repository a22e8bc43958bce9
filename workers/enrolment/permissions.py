"""Find out what the shell user of a phone may do, without changing anything."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.model.enrolment import NodeFact
from orchestrator.model.errors import Unsupported
from workers.connection.base import DeviceConnection
from workers.session.conditions.bluetooth import has_switch
from workers.session.conditions.root import root_shell

BRIGHTNESS = ("system", "screen_brightness")


def probe_permissions(connection: DeviceConnection, nodes: Iterable[NodeFact]) -> dict[str, bool]:
    """Permission -> whether the shell has it. Raises TransportLost."""
    root = _has_root(connection)
    clocks = any(node.path.endswith("/scaling_max_freq") for node in nodes)
    return {
        "root": root,
        "write_settings": _may_write_settings(connection),
        "airplane_mode": root or _output(connection, "cmd", "connectivity", "airplane-mode") in ("enabled", "disabled"),
        "bluetooth": _may_switch_bluetooth(connection),
        "fixed_performance": _succeeds(connection, "cmd", "power", "set-fixed-performance-mode-enabled", "false"),
        "lock_clocks": root and clocks,
        "perfetto": _succeeds(connection, "sh", "-c", "command -v perfetto"),
    }


def _has_root(connection: DeviceConnection) -> bool:
    try:
        root_shell(connection, "enrolment")
    except Unsupported:
        return False
    return True


def _may_write_settings(connection: DeviceConnection) -> bool:
    """The brightness is written as it is."""
    value = _output(connection, "settings", "get", *BRIGHTNESS)
    if not value.isdigit():
        return False
    written = _succeeds(connection, "settings", "put", *BRIGHTNESS, value)
    return written and _output(connection, "settings", "get", *BRIGHTNESS) == value


def _may_switch_bluetooth(connection: DeviceConnection) -> bool:
    has_service = _output(connection, "settings", "get", "global", "bluetooth_on") in ("0", "1")
    return has_service and has_switch(connection)


def _output(connection: DeviceConnection, *argv: str) -> str:
    result = connection.shell(argv)
    return result.stdout.decode(errors="replace").strip() if result.code == 0 else ""


def _succeeds(connection: DeviceConnection, *argv: str) -> bool:
    return connection.shell(argv).code == 0
