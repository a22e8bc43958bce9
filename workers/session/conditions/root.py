"""Run commands as root, on a phone that allows it."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.model.errors import DeviceSick, Unsupported
from workers.connection.base import DeviceConnection, ShellResult

WAYS = (("sh", "-c"), ("su", "-c"), ("su", "0", "sh", "-c"))
"""An adbd that is root already; Magisk and the like; the `su` of userdebug builds."""
RootShell = Callable[[str], str]


def root_shell(connection: DeviceConnection, what: str) -> RootShell:
    """Return how to run a script as root. Raises Unsupported, naming what it is needed for."""
    for way in WAYS:
        if connection.shell([*way, "id -u"]).stdout.strip() == b"0":
            return lambda script: _run(connection, [*way, script])
    raise Unsupported(f"{what} needs root, which it does not give", device=connection.serial, remedy="root the phone")


def _run(connection: DeviceConnection, argv: list[str]) -> str:
    result: ShellResult = connection.shell(argv)
    if result.code != 0:
        output = (result.stderr or result.stdout).decode(errors="replace").strip()[-300:]
        raise DeviceSick(f"`{argv[-1][:200]}` as root ended with {result.code}: {output}", device=connection.serial)
    return result.stdout.decode(errors="replace")
