"""One connection to an adb server, all of whose reads and writes end by one deadline, unless it is restarted."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from socket import socket as Connection  # noqa: N812

import adbutils

CHUNK_BYTES = 64 << 10
"""Largest DATA of the sync protocol."""
WENT_AWAY = (OSError, EOFError, ValueError, adbutils.AdbError)
"""The errors of a lost peer or a garbled message (an AdbTimeout is an AdbError)."""


class AdbStream(adbutils.AdbConnection):  # type: ignore[misc]
    """A connection on which nothing was asked yet. `connect`: makes it within so many seconds; raises OSError."""

    def __init__(self, connect: Callable[[float], Connection], deadline_s: float) -> None:
        self._connect, self._deadline_s = connect, deadline_s
        self.restart()
        self._held = bytearray()
        """The bytes that have come and were not asked for yet."""
        self.reads_ahead = False
        """Whatever comes is for this object, so that it takes few calls to read it."""
        super().__init__("", 0)  # only `connect` knows where it listens

    def restart(self) -> None:
        """Count the time until the deadline anew."""
        self._ends_at = time.monotonic() + self._deadline_s

    def _safe_connect(self) -> Connection:
        """adbutils' own would start a server of its own version where none listens."""
        return self._connect(self._deadline_s)

    def _await(self) -> None:
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("deadline")
        self.conn.settimeout(left_s)

    def is_ready(self, wait_s: float) -> bool:
        """Return whether there is something to read within this time. Raises TimeoutError at the deadline."""
        self._await()
        if self._held:
            return True
        poll = select.poll()
        poll.register(self.conn, select.POLLIN)
        return bool(poll.poll(1000 * min(wait_s, self._ends_at - time.monotonic())))

    def _read_fully(self, n: int) -> bytes:
        while (missing := n - len(self._held)) > 0:
            self._await()
            most = max(missing, CHUNK_BYTES) if self.reads_ahead else missing
            part = self.conn.recv(min(most, 1 << 20))
            if not part:
                raise EOFError(f"closed {missing} bytes before the end of a message")
            self._held += part
        taken = bytes(self._held[:n])
        del self._held[:n]
        return taken

    def write(self, data: bytes) -> None:
        self._await()
        self.conn.sendall(data)

    def request(self, service: str) -> None:
        """Ask for a service. Raises AdbError with the server's reason."""
        message = service.encode()
        self.write(b"%04x" % len(message) + message)
        self.check_okay()

    def close(self) -> None:
        self.conn.close()  # adbutils sleeps 10 ms here
