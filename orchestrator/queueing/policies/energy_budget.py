"""A budget of so many joules an hour."""

from __future__ import annotations

import random
from collections.abc import Collection

from orchestrator.queueing.dispatch.policy import Later, Policy
from orchestrator.queueing.dispatch.request import Request
from orchestrator.queueing.dispatch.server import Server


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
