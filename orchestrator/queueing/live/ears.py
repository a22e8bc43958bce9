"""Wait for whichever phone speaks first, or for a moment, to some microseconds."""

from __future__ import annotations

import select
from collections.abc import Mapping

from .wire import Wire


class Ears:
    """epoll waits in milliseconds: the rest of a wait is a select on epoll itself, which waits in microseconds."""

    def __init__(self, wires: Mapping[int, Wire]) -> None:
        self._epoll = select.epoll()
        self._numbers = {wire.fileno(): number for number, wire in wires.items()}
        for descriptor in self._numbers:
            self._epoll.register(descriptor, select.EPOLLIN)

    def listen(self, wait_s: float) -> list[int]:
        """Numbers of those that have something to say; none when the time is over."""
        if wait_s > 0:
            select.select([self._epoll], [], [], wait_s)
        return [self._numbers[descriptor] for descriptor, _ in self._epoll.poll(0)]

    def forget(self, wire: Wire) -> None:
        self._epoll.unregister(wire.fileno())

    def close(self) -> None:
        self._epoll.close()
