"""Connect to a server of this machine, within a time."""

from __future__ import annotations

import errno
import socket
import struct
import time
from pathlib import Path


def connect_tcp(port: int, timeout_s: float) -> socket.socket:
    """Connect to a port of this machine. Raises OSError."""
    return socket.create_connection(("127.0.0.1", port), timeout=timeout_s)


def connect_unix(path: Path, timeout_s: float) -> socket.socket:
    """Connect to a unix socket; where many come at once (adb's queue holds 4), wait for one's turn. Raises OSError."""
    client, end = socket.socket(socket.AF_UNIX), time.monotonic() + timeout_s
    try:
        while not _is_connected(client):
            seconds, rest = divmod(max(end - time.monotonic(), 1e-6), 1.0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(seconds), int(rest * 1e6)))
            client.connect(str(path))  # Python's own timeout would fail at once where the queue is full
    except BlockingIOError as e:
        client.close()
        raise TimeoutError(f"{path} takes no connection within {timeout_s:g} s") from e
    except BaseException:
        client.close()
        raise
    return client


def _is_connected(client: socket.socket) -> bool:
    """A process that was stopped while it waited gives the wait up when it goes on, and Python takes it for done."""
    try:
        client.getpeername()
    except OSError as e:
        if e.errno != errno.ENOTCONN:
            raise
        return False
    return True
