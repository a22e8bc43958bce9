"""Android's settings by the shell's `settings` command."""

from __future__ import annotations

import time

from workers.connection.base import DeviceConnection, ShellResult
from workers.devices.tools import check_ran

UNSET = "null"
"""Android's word for a setting that was never made."""


def read_setting(connection: DeviceConnection, space: str, name: str) -> str:
    """The value, `null` where there is none; empty where the phone does not tell. Raises Unsupported where it has no
    `settings`."""
    answer = connection.shell(command := reading(space, name))
    check_ran(connection, command, answer)
    return told(answer)


def followed(connection: DeviceConnection, setting: tuple[str, str], wanted: str, within_s: float) -> str:
    """Return a setting that follows a service: as soon as it is the wanted one, or what it is after so long."""
    end = time.monotonic() + within_s
    while (found := read_setting(connection, *setting)) != wanted and time.monotonic() < end:
        time.sleep(0.2)
    return found


def write_setting(connection: DeviceConnection, space: str, name: str, value: str) -> None:
    """Write a value as `read_setting` told it; `null` deletes. Whether the phone complied, reading back tells."""
    for command in writing(space, name, value):
        connection.shell(command)


def reading(space: str, name: str) -> list[str]:
    return ["settings", "get", space, name]


def told(answer: ShellResult) -> str:
    """The value, as `read_setting` tells it."""
    return answer.stdout.decode(errors="replace").strip() if answer.code == 0 else ""


def writing(space: str, name: str, value: str) -> list[list[str]]:
    """Return at most one command; none where nobody knows the value."""
    if value == UNSET:
        return [["settings", "delete", space, name]]
    return [["settings", "put", space, name, value]] if value else []
