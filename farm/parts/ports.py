"""The TCP ports that a farm has chosen: no other farm of this machine chooses them too."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self

from .part import free_port, is_free


class Ports:
    """Use it as a context manager for as long as the farm runs.

    A part listens seconds after its port was chosen, and again after each of its deaths. Until then the port is free,
    so a second farm would choose it as well. So the farm also holds an abstract Unix socket with the port's number:
    its name is unique in the network namespace, as the port is, and the kernel frees it however the process ends.
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._held:
            self._held.pop().close()

    def take(self, port: int) -> bool:
        """Take a loopback port for this farm, and return whether it is free and no other farm has chosen it."""
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0pocketfarm/port/{port}")
        except OSError:
            claim.close()
            return False
        if not is_free(port):
            claim.close()
            return False
        self._held.append(claim)
        return True

    def take_any(self) -> int:
        """A free loopback port."""
        while not self.take(port := free_port()):
            pass
        return port
