"""Policies with one line for all servers."""

from __future__ import annotations

import random
from collections.abc import Collection

from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.dispatch.request import Request
from orchestrator.queueing.dispatch.server import Server


class Fifo(Policy):
    """First in, first out: one line; whoever has been idle longest serves the first."""


class Sjf(Policy):
    """Shortest job first: one line, by the expected time.

    `known: true`: by the request's own time, which only a simulation knows before it is served.
    """

    def __init__(self, generator: random.Random, known: bool = False) -> None:
        super().__init__(generator)
        self._known = known

    def rank(self, request: Request, now: float) -> float:
        return request.size_s if self._known and request.size_s is not None else request.expected_s


class Edf(Policy):
    """Earliest deadline first: one line; those without one come last."""

    def rank(self, request: Request, now: float) -> float:
        return request.deadline


class FastestFirst(Policy):
    """One line; of the idle servers the one that is expected to be the fastest with it."""

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server:
        return min(servers, key=lambda server: server.expected_s[request.kind])
