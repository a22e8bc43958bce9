"""The server that is expected to be ready first."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.dispatch.request import Request
from orchestrator.queueing.dispatch.server import Server


class LeastExpectedWork(Policy):
    """A line for each server; a request goes where its own end is expected first."""

    own_queues = True

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        return min(servers, key=lambda server: server.backlog_s(now) + server.expected_s[request.kind])
