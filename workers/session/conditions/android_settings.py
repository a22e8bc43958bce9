"""Android's settings by the shell's `settings` command."""

from __future__ import annotations

from workers.connection.base import DeviceConnection

UNSET = "null"
"""Android's word for a setting that was never made."""


def read_setting(connection: DeviceConnection, space: str, name: str) -> str:
    """The value, `null` where there is none; empty where the phone does not tell."""
    result = connection.shell(["settings", "get", space, name])
    return result.stdout.decode(errors="replace").strip() if result.code == 0 else ""


def write_setting(connection: DeviceConnection, space: str, name: str, value: str) -> None:
    """Write a value as `read_setting` told it; `null` deletes. Whether the phone complied, reading back tells."""
    if value == UNSET:
        connection.shell(["settings", "delete", space, name])
    elif value:
        connection.shell(["settings", "put", space, name, value])
