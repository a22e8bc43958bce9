"""The fastest idle server."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.dispatch.request import Request
from orchestrator.queueing.dispatch.server import Server


class FastestFirst(Policy):
    """One line; of the idle servers the one that is expected to be the fastest with it."""

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        return min(servers, key=lambda server: server.expected_s[request.kind])
