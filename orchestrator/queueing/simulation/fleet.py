"""Modelled servers: how long they take, what they need, how hot they get."""

from __future__ import annotations

import numpy as np

from orchestrator.queueing.dispatch import Request, Server
from orchestrator.queueing.draws import Draws, draws_of
from orchestrator.queueing.requests import Course
from orchestrator.queueing.service_times import ServiceTimes, make_servers
from orchestrator.queueing.spec import QueueingSpec

from .heat import HeatModel

BEYOND_C = 0.1
"""The least difference that a thermometer shows."""


class SimulatedServer:
    """A server of a group, and the body behind it."""

    __slots__ = (
        *("_busy_s", "_group", "_travels", "_warm_until"),
        *("began", "ends", "epoch", "heat", "server", "station", "times", "travel_s"),
    )

    def __init__(self, server: Server, times: ServiceTimes, travels: Draws | None, station: int) -> None:
        group = times.group
        self.station = station
        self.server, self._group, self.times = server, group, times
        self.heat = HeatModel(group.heat) if group.heat else None
        server.thermometer = self.heat
        self._travels = travels
        self.began = self.ends = self.travel_s = 0.0
        self.epoch = 0
        """Counts what it has begun: an end that was planned before an interruption is known by it."""
        self._busy_s = 0.0
        self._warm_until = -1.0 if group.setup else float("inf")

    def work(self, batch: list[Request], factor: float, now: float) -> float:
        """Begin; when it will end."""
        duration = self.times.of(batch) * factor
        if now > self._warm_until:
            duration += self._group.setup
        if self.heat is not None:
            duration *= self.heat.begin(now)
        self.epoch += 1
        self.travel_s = 0.0 if self._travels is None else next(self._travels)
        self.began, self.ends = now, now + duration
        return self.ends + self.travel_s

    def rest(self, now: float) -> None:
        """It has ended, or was interrupted."""
        self._busy_s += self.served_s(now)
        if self.heat is not None:
            self.heat.rest(now)
        if self._group.setup:
            self._warm_until = float("inf") if self._group.keep_warm is None else now + self._group.keep_warm

    def border(self, inferences: int, now: float) -> tuple[float, int]:
        """Return when the inference under way is over, of so many that it does, and how many are left then."""
        each_s = (self.ends - self.began) / inferences
        done = min(inferences, int((now - self.began) / each_s) + 1)
        return self.began + done * each_s, inferences - done

    def busy_s(self, now: float) -> float:
        """Time in which it has served."""
        return self._busy_s + (self.served_s(now) if self.server.running else 0.0)

    def served_s(self, now: float) -> float:
        """Return how long it has served what it runs; the answer then travels."""
        return min(now, self.ends) - self.began

    def energy_j(self, now: float) -> float:
        """Return what it took for what it has just served."""
        return self.served_s(now) * self.server.busy_w

    @property
    def beyond(self) -> str:
        """A doubt, where it became hotter than its model is known for; else empty."""
        known = self._group.heat.known_to if self._group.heat else None
        if self.heat is None or known is None or self.heat.hottest_c <= known + BEYOND_C:
            return ""
        hot = f"{self.server.name} became {self.heat.hottest_c:.1f} C, and no block that its heat was learnt from was"
        return f"{hot} hotter than {known:.1f} C: how it throttles there is not known"


class Fleet:
    """All servers of a spec."""

    def __init__(self, spec: QueueingSpec, seed: np.random.SeedSequence) -> None:
        self.course = Course()
        made = make_servers(spec, seed)
        own = zip(spec.servers, seed.spawn(len(spec.servers)), strict=True)
        travels = {
            group.name: draws_of(group.travel, np.random.default_rng(each)) if group.travel else None
            for group, each in own
        }
        self.servers = [
            SimulatedServer(server, times, travels[times.group.name], spec.stands_at(times.group))
            for server, times in made
        ]

    def note(self, at: float, waiting: int, waited_s: float) -> None:
        """A point of the course."""
        course = self.course
        course.at.append(at)
        course.waiting.append(waiting)
        course.waited_s.append(waited_s)
        course.busy_s.append([server.busy_s(at) for server in self.servers])
        if any(server.heat for server in self.servers):
            course.temp_c.append([server.heat.temp_c(at) if server.heat else None for server in self.servers])
