"""The Protocol of a connection to a device, whatever the transport."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .stream import Stream


@dataclass(frozen=True)
class ShellResult:
    """A finished command on the device."""

    code: int
    stdout: bytes
    stderr: bytes


class DeviceConnection(Protocol):
    """A connected device. Every call is bounded by `deadline_s` as a whole, `shells` command by command, and raises
    `TransportLost` when the connection went away or the deadline passed: `DeviceSlow` where the device is there."""

    serial: str
    """The farm's name for the device; errors carry it."""
    address: str
    """The transport's name for it, e.g. `127.0.0.1:5555`; empty for this host itself."""
    folder: str
    """The farm's own folder on the device, e.g. `/data/local/tmp/pocketfarm`."""

    def shell(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> ShellResult:
        """Run one command; arguments are quoted by one function (`workers/connection/quote.py`)."""
        ...

    def shells(
        self, commands: Sequence[Sequence[str]], *, deadline_s: float = 10.0, guard: int | None = None
    ) -> list[ShellResult]:
        """Run commands one after the other, whatever becomes of those before, in one round trip; in their order.
        `deadline_s` is for each command: a slow device that goes on is not given up.
        `guard`: where the command of this number fails, there is no answer to it, and those behind it are not run.
        Raises DeviceSick where the device does not tell them apart."""
        ...

    def stream(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> Stream:
        """Start one command whose standard input and output stay open; it ends with its connection. `deadline_s` is for
        the start alone."""
        ...

    def push(self, source: Path, target: str, *, mode: int = 0o644, deadline_s: float = 120.0) -> None:
        """Copy a file to the device. Raises DeviceSick where the storage is full."""
        ...

    def pull(self, source: str, target: Path, *, deadline_s: float = 120.0) -> None: ...

    def reconnect(self) -> None:
        """Ask for the device again after it was lost, where the transport must be asked; says nothing of success."""
        ...
