"""Connections to Redis, lent to one command after the other: much of a short command's time is the client's own."""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import Any

from redis import ConnectionPool, Redis
from redis.exceptions import RedisError


class Client(Redis):  # type: ignore[misc]
    """redis-py's client, which asks without its measurements of each command; what fails is tried again as there."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """The answer to one command. Raises RedisError."""
        if self.connection is not None:
            return super().execute_command(*args, **options)
        connection = self.connection_pool.get_connection()
        try:
            return connection.retry.call_with_retry(
                lambda: self._answer(connection, args, options), lambda _: connection.disconnect()
            )
        finally:
            self.connection_pool.release(connection)

    def _answer(self, connection: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        connection.send_command(*args, **options)
        return self.parse_response(connection, args[0], **options)


class Connections(ConnectionPool):  # type: ignore[misc]
    """A pool of redis-py's that lends what was given back without its counts and events: with them a command takes half
    as long again. For the pool itself a connection is lent from then on until it fails. Threads may share it."""

    def reset(self) -> None:
        """Forget all connections: called by redis-py at first, and in a process that was forked."""
        self._idle: list[Any] = []
        super().reset()

    def get_connection(self, *_: Any, **__: Any) -> Any:
        """One that is connected and has nothing left to read. Raises RedisError."""
        if self.pid == os.getpid():
            try:
                connection = self._idle.pop()
            except IndexError:
                pass
            else:
                if _is_fit(connection):
                    return connection
                super().release(connection)
        connection = super().get_connection()
        _wait_in_kernel(connection)
        return connection

    def release(self, connection: Any) -> None:
        """Take one back."""
        if self.owns_connection(connection) and not connection.should_reconnect():
            self._idle.append(connection)
        else:
            super().release(connection)


def _is_fit(connection: Any) -> bool:
    """Return whether it is open and at the begin of an answer; the pool itself knows what to do with others."""
    try:
        return connection.is_connected and not connection.can_read()
    except (RedisError, OSError):
        return False


def _wait_in_kernel(connection: Any) -> None:
    """Python waits for a socket with a time limit by a call of its own before each that reads or writes, and threads
    hand the interpreter over at every call: here the kernel keeps the limit. TLS has layers of its own between."""
    plain, limit_s = connection._sock, connection.socket_timeout
    if sys.platform != "linux" or type(plain) is not socket.socket or not limit_s:
        return
    limit = struct.pack("ll", int(limit_s), int(limit_s % 1 * 1e6))
    for side in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        plain.setsockopt(socket.SOL_SOCKET, side, limit)
    plain.settimeout(None)
