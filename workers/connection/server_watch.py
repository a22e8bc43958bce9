"""Notice that an adb server has gone, or was started anew: a connection to it that is kept open ends with it."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable

SHAKEN_S = 15.0
"""The time after it in which phones may still be missing: the new server has to find them again."""


class ServerWatch:
    """`connect` opens a connection to the server; it raises OSError where none listens. Threads may share it."""

    def __init__(self, connect: Callable[[], socket.socket], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._connect, self._clock = connect, clock
        self._lock = threading.Lock()
        self._kept: socket.socket | None = None
        self._gone_at = float("-inf")

    def __del__(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def look(self, wait_s: float = 0.0) -> None:
        """See whether the server is still the same one. Who lives as long as the farm calls it now and then.

        `wait_s`: give its end so long to show, as the kernel closes the connections of a process one after the other.
        """
        with self._lock:
            if self._kept is not None and not _is_open(self._kept, wait_s):
                self._kept.close()
                self._kept, self._gone_at = None, self._clock()
            if self._kept is None:
                try:
                    self._kept = self._connect()
                except OSError:
                    self._gone_at = self._clock()

    @property
    def is_shaken(self) -> bool:
        """True if the server was away a moment ago, so that phones are missing that are well. Not known, hence False,
        where nobody looked before."""
        if self._kept is not None:
            self.look(wait_s=0.1)
        return self._clock() - self._gone_at < SHAKEN_S


def _is_open(kept: socket.socket, wait_s: float) -> bool:
    """The server has nothing to say on it, and says nothing while it lives."""
    poll = select.poll()
    poll.register(kept, select.POLLIN)
    try:
        return not poll.poll(wait_s * 1000) or bool(kept.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK))
    except OSError:
        return False
