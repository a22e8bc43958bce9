"""A server of the spec, and the phone that plays it."""

from __future__ import annotations

import math

from orchestrator.errors import FarmError
from orchestrator.queueing.dispatch import Request, Server
from orchestrator.queueing.service_times import ServiceTimes
from orchestrator.queueing.spec import QueueingSpec

from .wire import Wire

LOOK_S = 1.0
"""How soon a hot phone is looked at again: nobody knows how fast it cools."""
NS_PER_S = 1e9
PATIENCE_S = 10.0
PATIENCE_TIMES = 20.0


class Gauge:
    """A phone's own temperature, as a policy sees it: of the skin where it tells it, else of the battery."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def known_c(self) -> float | None:
        if not self._wire.readings:
            return None
        last = self._wire.readings[-1]
        return last.temp_c if last.skin_c is None else last.skin_c

    def temp_c(self, now: float) -> float:  # noqa: ARG002
        found = self.known_c()
        return -math.inf if found is None else found

    def cool_at(self, temp_c: float, now: float) -> float:
        return now + LOOK_S if self.temp_c(now) > temp_c else now


class Station:
    """Asks its phone to serve, and knows what it is busy with."""

    def __init__(self, server: Server, times: ServiceTimes, wire: Wire) -> None:
        self.server, self.times, self.wire = server, times, wire
        self.gauge = Gauge(wire)
        server.thermometer = self.gauge
        self.asked = 0
        """Number of what it serves; 0: nothing."""
        self.began = 0.0
        self.late_at = math.inf
        """When its answer is so late that it does not count on it any more."""
        self.served_s = 0.0
        self.windows: list[tuple[int, int]] = []
        """From when to when it served, by the phone's clock."""
        self.clock_s = -math.inf
        """The phone's clock at the run's start, as far as answers tell: the least that they can have travelled."""

    def ask(self, spec: QueueingSpec, batch: list[Request], factor: float, now: float) -> None:
        """Raises FarmError."""
        kind, most = batch[0].kind, spec.batch.size
        self.asked, self.began = batch[0].number, now
        expected_s = self.server.expected_s[kind] * factor
        self.late_at = now + PATIENCE_S + PATIENCE_TIMES * expected_s
        if spec.classes[kind].infer is None:
            hold_s = self.times.of(batch) * factor
            self.late_at += hold_s
            self.wire.ask(self.asked, hold_ns=round(hold_s * NS_PER_S))
        else:
            self.wire.ask(self.asked, network=network_name(kind, most if len(batch) > 1 else 1))

    def is_ahead_of_its_readings(self) -> bool:
        """Whether its phone has still to tell of the last that it served; hears what it says meanwhile."""
        if self.server.gone or not self.wire.readings or not self.windows:
            return False
        try:
            self.wire.answers()
        except FarmError:
            return False
        return self.wire.readings[-1].t_ns < self.windows[-1][1]


def network_name(kind: int, batch: int) -> str:
    """What a resident agent calls the network of a class, compiled for so many requests at once."""
    return f"{kind}x{batch}"
