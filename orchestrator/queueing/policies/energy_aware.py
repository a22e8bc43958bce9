"""The server that needs the least energy, within reason."""

from __future__ import annotations

import random
from collections.abc import Collection

from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.dispatch.request import Request
from orchestrator.queueing.dispatch.server import Server


class EnergyAware(Policy):
    """A line for each server; of those that are expected to end it within `patience` times the earliest end, the one
    that needs the least energy."""

    own_queues = True

    def __init__(self, generator: random.Random, patience: float = 2.0) -> None:
        super().__init__(generator)
        if patience < 1:
            raise ValueError(f"patience is {patience}: below 1 no server would do")
        self._patience = patience

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        ends = [(server.backlog_s(now) + server.expected_s[request.kind], server) for server in servers]
        latest = self._patience * min(end for end, _ in ends)
        return min(
            (each for each in ends if each[0] <= latest), key=lambda each: (each[1].expected_j(request), each[0])
        )[1]
