"""One after the other."""

from __future__ import annotations

from collections.abc import Collection
from itertools import cycle
from typing import TYPE_CHECKING

from .policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.queueing.dispatch.request import Request
    from orchestrator.queueing.dispatch.server import Server


class RoundRobin(Policy):
    """A line for each server; requests go to the servers in turn."""

    own_queues = True
    _turn: Iterator[Server] | None = None

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        if self._turn is None:
            self._turn = cycle(self.servers)
        return next(self._turn)
