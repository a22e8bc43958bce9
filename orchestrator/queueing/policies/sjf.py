"""Shortest job first."""

from __future__ import annotations

import random

from orchestrator.queueing.dispatch.policy import Policy
from orchestrator.queueing.dispatch.request import Request


class Sjf(Policy):
    """One line, the shortest expected time first.

    `known: true`: by the request's own time, which only a simulation knows before it is served.
    """

    def __init__(self, generator: random.Random, known: bool = False) -> None:
        super().__init__(generator)
        self._known = known

    def rank(self, request: Request, now: float) -> float:
        return request.size_s if self._known and request.size_s is not None else request.expected_s
