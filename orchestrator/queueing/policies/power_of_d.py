"""The power of d choices."""

from __future__ import annotations

import random
from collections.abc import Collection

from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.dispatch.request import Request
from orchestrator.queueing.dispatch.server import Server


class PowerOfD(Policy):
    """A line for each server; of `d` servers drawn at random the one with the fewest requests (Mitzenmacher 2001)."""

    own_queues = True

    def __init__(self, generator: random.Random, d: int = 2) -> None:
        super().__init__(generator)
        if d < 1:
            raise ValueError(f"d is {d}: at least one server is asked")
        self._d = d

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        asked = self.generator.sample(self.servers, min(self._d, len(self.servers)))
        return min(asked, key=lambda server: server.in_system)
