"""The checkpoint of a training on the device: another attempt of the job there goes on from it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from workers.connection.base import DeviceConnection
from workers.devices.install import run


def is_begun(connection: DeviceConnection, file: str) -> bool:
    """Whether an earlier attempt has left one. Makes its folder."""
    run(connection, "mkdir", "-p", file.rpartition("/")[0])
    return connection.shell(["ls", file]).code == 0


def pull_checkpoint(connection: DeviceConnection, file: str) -> bytes:
    """Its content, which ends with its own hash; the device has it no more."""
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        target = Path(temporary) / "checkpoint"
        connection.pull(file, target)
        content = target.read_bytes()
    run(connection, "rm", "-f", file)
    return content
