"""Join the shortest queue."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.dispatch.request import Request
from orchestrator.queueing.dispatch.server import Server


class Jsq(Policy):
    """A line for each server; a request goes to the server with the fewest requests."""

    own_queues = True

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        return min(servers, key=lambda server: server.in_system)
