"""Connections to Redis, lent to one command after the other: much of a short command's time is its pool's own."""

from __future__ import annotations

import os
from typing import Any

from redis import ConnectionPool
from redis.exceptions import RedisError


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
        return super().get_connection()

    def release(self, connection: Any) -> None:
        """Take one back."""
        if self.owns_connection(connection) and not connection.should_reconnect():
            self._idle.append(connection)
        else:
            super().release(connection)


def _is_fit(connection: Any) -> bool:
    """Whether it is open and at the begin of an answer; the pool itself knows what to do with others."""
    try:
        return connection.is_connected and not connection.can_read()
    except (RedisError, OSError):
        return False
