"""Connect to a server of this machine, within a time."""

from __future__ import annotations

import socket
import struct
from pathlib import Path


def connect_tcp(port: int, timeout_s: float) -> socket.socket:
    """Connect to a port of this machine. Raises OSError."""
    return socket.create_connection(("127.0.0.1", port), timeout=timeout_s)


def connect_unix(path: Path, timeout_s: float) -> socket.socket:
    """Connect to a unix socket; where many come at once (adb's queue holds 4), wait for one's turn. Raises OSError."""
    client = socket.socket(socket.AF_UNIX)
    try:
        seconds, rest = divmod(timeout_s, 1.0)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(seconds), int(rest * 1e6)))
        client.connect(str(path))  # Python's own timeout would fail at once where the queue is full
    except BlockingIOError as e:
        client.close()
        raise TimeoutError(f"{path} takes no connection within {timeout_s:g} s") from e
    except BaseException:
        client.close()
        raise
    return client
