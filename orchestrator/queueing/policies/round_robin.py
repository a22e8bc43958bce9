"""One after the other."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.dispatch.request import Request
from orchestrator.queueing.dispatch.server import Server


class RoundRobin(Policy):
    """A line for each server; requests go to the servers in turn."""

    own_queues = True
    _turn = -1

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        self._turn = (self._turn + 1) % len(self.servers)
        return self.servers[self._turn]
