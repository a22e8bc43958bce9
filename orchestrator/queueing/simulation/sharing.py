"""A modelled server that runs several requests together, which come and go between two tokens.

That is batching by iterations (G.-I. Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative
Models", OSDI 2022), as a processor that is shared: n requests take `factor(n)` times as long each as one alone. Where
that is n, it is egalitarian processor sharing, for which theory has a formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from orchestrator.queueing.dispatch import Request, Server
from orchestrator.queueing.service_times import ServiceTimes

from .fleet import SimulatedServer


class SharedServer(SimulatedServer):
    """Requests that run at the same time, each with what is left of it."""

    __slots__ = ("_at", "_factor", "_left")

    def __init__(self, server: Server, times: ServiceTimes, station: int, factor: Callable[[int], float]) -> None:
        super().__init__(server, times, None, station)
        self._factor, self._at = factor, 0.0
        self._left: dict[Request, float] = {}
        """The time that each would still take alone."""

    def join(self, request: Request, now: float) -> None:
        """A request begins beside those that run."""
        self._go_on(now)
        self._left[request] = self.times.of([request])

    def leave(self, now: float) -> Request:
        """Return the request that is over now."""
        self._go_on(now)
        request = min(self._left, key=self._left.__getitem__)
        del self._left[request]
        request.served_s = now - request.started
        return request

    def next_end(self) -> float:
        """Return when the first of those that run will be over, if nobody joins; infinite where none runs."""
        self.epoch += 1
        return self._at + min(self._left.values()) * self._factor(len(self._left)) if self._left else math.inf

    def busy_s(self, now: float) -> float:
        return self._busy_s + (now - self._at if self._left else 0.0)

    def _go_on(self, now: float) -> None:
        """Let all that run come as far as they are now."""
        spent_s, count, self._at = now - self._at, len(self._left), now
        if not count:
            return
        self._busy_s += spent_s
        factor = self._factor(count)
        for request, left_s in self._left.items():
            request.energy_j += spent_s * self.server.busy_w / count
            self._left[request] = left_s - spent_s / factor
            behind_s = request.behind * self.times.of([request])
            if math.isnan(request.first_at) and self._left[request] <= behind_s:
                request.first_at = now - (behind_s - self._left[request]) * factor


def shared(one: SimulatedServer, factor: Callable[[int], float]) -> SharedServer:
    """Return the same server, which runs several requests together."""
    return SharedServer(one.server, one.times, one.station, factor)
