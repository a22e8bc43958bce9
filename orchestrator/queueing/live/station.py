"""A server of the spec, and the phone that plays it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from orchestrator.model.errors import FarmError
from orchestrator.model.event import Served
from orchestrator.queueing.dispatch import Request, Server
from orchestrator.queueing.service_times import ServiceTimes
from orchestrator.queueing.spec import QueueingSpec

from .wire import Wire

LOOK_S = 1.0
"""The time until a hot phone is looked at again: nobody knows how fast it cools."""
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


@dataclass(slots=True)
class Asked:
    """The batch that a phone serves at a time, and then answers."""

    number: int
    batch: list[Request]
    at: float
    left: int = 1
    """Inferences that the request still needs, with this one."""
    cut: bool = False
    """It is to be interrupted then."""


class Station:
    """Asks its phone to serve, and knows what it is busy with."""

    def __init__(self, server: Server, times: ServiceTimes, wire: Wire) -> None:
        self.server, self.times, self.wire = server, times, wire
        self.gauge = Gauge(wire)
        server.thermometer = self.gauge
        self.asked: Asked | None = None
        """The batch that it serves."""
        self._last: Request | None = None
        """The request whose inference was the last."""
        self.late_at = math.inf
        """The time from which on it does not count on its answer any more."""
        self.served_s = 0.0
        self.windows: list[tuple[int, int]] = []
        """The windows in which it served, by the phone's clock; a request's inferences in a row are one."""
        self.clock_s = -math.inf
        """The phone's clock at the run's start, as far as answers tell: the least that they can have travelled."""

    def ask(self, spec: QueueingSpec, batch: list[Request], factor: float, now: float) -> None:
        """Ask for all of the batch, or where it may be interrupted for its next inference. Raises FarmError."""
        kind, most = batch[0].kind, spec.batch.size
        inferences = spec.classes[kind].inferences or 1
        left = round(batch[0].left * inferences) if spec.preemption != "none" else 1
        self.asked = Asked(batch[0].number, batch, now, left)
        expected_s = self.server.expected_s[kind] * factor
        self.late_at = now + PATIENCE_S + PATIENCE_TIMES * expected_s
        if spec.classes[kind].infer is None:
            hold_s = self.times.of(batch) * factor / left
            self.late_at += hold_s
            self.wire.ask(batch[0].number, hold_ns=round(hold_s * NS_PER_S))
        else:
            count, first = inferences if spec.preemption == "none" else 1, batch[0]
            name = network_name(kind, most if len(batch) > 1 else 1)
            self.wire.ask(first.number, network=name, count=count, prompt=first.prompt, generate=first.tokens)

    def answered(self, answer: Served, now: float) -> Asked | None:
        """Return what this was the answer to, with its times noted; None: nothing that was asked."""
        done, self.asked, self.late_at = self.asked, None, math.inf
        if done is None or done.number != answer.id:
            return None
        window, served_s = (answer.start_ns, answer.end_ns), (answer.end_ns - answer.start_ns) / NS_PER_S
        travel_s = max(0.0, now - done.at - served_s)
        self.served_s += served_s
        if self._last is done.batch[0]:
            self.windows[-1] = (self.windows[-1][0], window[1])
        else:
            self._last = done.batch[0]
            self.windows.append(window)
            for request in done.batch:  # of one that was interrupted nobody knows the energy
                request.energy_j = math.nan if request.served_s else len(self.windows) - 1
        for request in done.batch:
            if answer.tokens:
                request.behind = (answer.end_ns - answer.first_ns) / (answer.end_ns - answer.start_ns)
            request.served_s += served_s
            request.travel_s += travel_s
        return done

    def is_ahead_of_its_readings(self) -> bool:
        """Return whether its phone has still to tell of the last that it served; hears what it says meanwhile."""
        if self.server.gone or not self.wire.readings or not self.windows:
            return False
        try:
            self.wire.answers()
        except FarmError:
            return False
        return self.wire.readings[-1].t_ns < self.windows[-1][1]


def network_name(kind: int, batch: int) -> str:
    """Return a resident agent's name for the network of a class, compiled for so many requests at once."""
    return f"{kind}x{batch}"
