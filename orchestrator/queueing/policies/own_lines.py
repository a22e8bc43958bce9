"""Policies with a line for each server."""

from __future__ import annotations

import random
from collections.abc import Collection

from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.dispatch.request import Request
from orchestrator.queueing.dispatch.server import Server


class Jsq(Policy):
    """Join the shortest queue: a line for each server; a request goes to the server with the fewest requests."""

    own_queues = True

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        return min(servers, key=lambda server: server.in_system)


class PowerOfD(Policy):
    """The power of d choices (Mitzenmacher 2001): a line for each server; of `d` servers drawn at random, the one with
    the fewest requests."""

    own_queues = True

    def __init__(self, generator: random.Random, d: int = 2) -> None:
        super().__init__(generator)
        if d < 1:
            raise ValueError(f"d is {d}: at least one server is asked")
        self._d = d

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        asked = self.generator.sample(self.servers, min(self._d, len(self.servers)))
        return min(asked, key=lambda server: server.in_system)


class RoundRobin(Policy):
    """A line for each server; requests go to the servers in turn."""

    own_queues = True
    _turn = -1

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        self._turn = (self._turn + 1) % len(self.servers)
        return self.servers[self._turn]


class LeastExpectedWork(Policy):
    """A line for each server; a request goes where its own end is expected first."""

    own_queues = True

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        return min(servers, key=lambda server: server.backlog_s(now) + server.expected_s[request.kind])


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
