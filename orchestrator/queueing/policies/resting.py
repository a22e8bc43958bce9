"""Policies with one line under which a server, or all of them, may have to rest."""

from __future__ import annotations

import random
from collections.abc import Collection

from orchestrator.queueing.dispatch.policy import Later, Policy
from orchestrator.queueing.dispatch.request import Request
from orchestrator.queueing.dispatch.server import Server


class ThermalAware(Policy):
    """One line; of the idle servers the coolest.

    One that reaches `rest_at_c` rests until it has cooled to `resume_at_c`.
    """

    def __init__(self, generator: random.Random, rest_at_c: float = 42.0, resume_at_c: float = 38.0) -> None:
        super().__init__(generator)
        if resume_at_c >= rest_at_c:
            raise ValueError(f"resume_at_c {resume_at_c} must be below rest_at_c {rest_at_c}")
        self._rest_at_c, self._resume_at_c = rest_at_c, resume_at_c
        self._resting: set[int] = set()

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server | Later:
        ready = [(temp, server) for server in servers if (temp := self._ready(server, now)) is not None]
        if ready:
            return min(ready, key=lambda each: each[0])[1]
        return Later(min(each.thermometer.cool_at(self._resume_at_c, now) for each in servers if each.thermometer))

    def _ready(self, server: Server, now: float) -> float | None:
        """The temperature of a server that does not rest. One without a thermometer never does."""
        if server.thermometer is None:
            return float("-inf")
        temp = server.thermometer.temp_c(now)
        if temp >= self._rest_at_c:
            self._resting.add(server.index)
        elif temp <= self._resume_at_c + 1e-9:
            self._resting.discard(server.index)
        return None if server.index in self._resting else temp


class EnergyBudget(Policy):
    """One line, the server that needs the least energy; nothing begins that would exceed the budget.

    A token bucket: `joules_per_hour` come in evenly, and up to `saved_j` of what was not used are kept. A request
    that needs more than `saved_j` begins when the bucket is full, and the debt is paid before the next.
    """

    def __init__(self, generator: random.Random, joules_per_hour: float = 3600.0, saved_j: float = 10.0) -> None:
        super().__init__(generator)
        if joules_per_hour <= 0 or saved_j <= 0:
            raise ValueError("joules_per_hour and saved_j must be above 0")
        self._w, self._most_j = joules_per_hour / 3600, saved_j
        self._saved_j, self._at, self._booked_j = saved_j, 0.0, 0.0

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server | Later:
        server = min(servers, key=lambda each: each.expected_j(request))
        booked_j = sum(each.booked_j for each in self.servers)
        kept_j = min(self._most_j, self._saved_j + (now - self._at) * self._w - (booked_j - self._booked_j))
        self._saved_j, self._at, self._booked_j = kept_j, now, booked_j
        lacking_j = min(server.expected_j(request), self._most_j) - kept_j
        return server if lacking_j <= 1e-9 else Later(now + lacking_j / self._w)
