"""Modelled servers: how long they take, what they need, how hot they get."""

from __future__ import annotations

import numpy as np

from orchestrator.queueing.dispatch import Request, Server
from orchestrator.queueing.requests import Course
from orchestrator.queueing.spec import QueueingSpec, ServerGroup

from .draws import Draws, draws_of
from .heat import HeatModel


class SimulatedServer:
    """A server of a group, and the body behind it."""

    __slots__ = ("_busy_s", "_draws", "_group", "_warm_until", "began", "ends", "epoch", "heat", "server")

    def __init__(self, server: Server, group: ServerGroup, draws: dict[int, Draws]) -> None:
        self.server, self._group, self._draws = server, group, draws
        self.heat = HeatModel(group.heat) if group.heat else None
        server.thermometer = self.heat
        self.began = self.ends = 0.0
        self.epoch = 0
        """Counts what it has begun: an end that was planned before an interruption is known by it."""
        self._busy_s = 0.0
        self._warm_until = -1.0 if group.setup else float("inf")

    def work(self, batch: list[Request], factor: float, now: float) -> float:
        """Begin; when it will end."""
        duration = self._size(batch) * factor
        if now > self._warm_until:
            duration += self._group.setup
        if self.heat is not None:
            duration *= self.heat.slowdown(now)
            self.heat.work(True, now)
        self.epoch += 1
        self.began, self.ends = now, now + duration
        return self.ends

    def rest(self, now: float) -> None:
        """It has ended, or was interrupted."""
        self._busy_s += now - self.began
        if self.heat is not None:
            self.heat.work(False, now)
        if self._group.setup:
            self._warm_until = float("inf") if self._group.keep_warm is None else now + self._group.keep_warm

    def busy_s(self, now: float) -> float:
        """Time in which it has served."""
        return self._busy_s + (now - self.began if self.server.running else 0.0)

    def energy_j(self, now: float) -> float:
        """What it took for what it has just served."""
        return (now - self.began) * self.server.busy_w

    def _size(self, batch: list[Request]) -> float:
        """Mean time of the batch's requests, each alone on this server, as far as they are not served yet."""
        if len(batch) == 1:
            return self._size_of(batch[0])
        return sum(self._size_of(request) for request in batch) / len(batch)

    def _size_of(self, request: Request) -> float:
        own = self._draws.get(request.kind)
        if own is None:
            assert request.size_s is not None
            return request.size_s * request.left / self._group.speed
        if request.drawn is None or request.drawn[0] is not own:  # an interrupted one goes on with its size
            request.drawn = (own, next(own))
        return request.drawn[1] * request.left / self._group.speed


class Fleet:
    """All servers of a spec."""

    def __init__(self, spec: QueueingSpec, seed: np.random.SeedSequence) -> None:
        self.servers: list[SimulatedServer] = []
        self.course = Course()
        for group, own_seed in zip(spec.servers, seed.spawn(len(spec.servers)), strict=True):
            random = np.random.default_rng(own_seed)
            own = {i: group.service[of.name] for i, of in enumerate(spec.classes) if of.name in group.service}
            draws = {kind: draws_of(times, random) for kind, times in own.items()}
            expected_s = [spec.mean_service_s(group, of) for of in spec.classes]
            for number in range(group.count):
                name = group.name if group.count == 1 else f"{group.name}-{number + 1}"
                busy_w = group.power.busy_w if group.power else 0.0
                server = Server(len(self.servers), name, expected_s, busy_w)
                self.servers.append(SimulatedServer(server, group, draws))

    def note(self, at: float, waiting: int, waited_s: float) -> None:
        """A point of the course."""
        course = self.course
        course.at.append(at)
        course.waiting.append(waiting)
        course.waited_s.append(waited_s)
        course.busy_s.append([server.busy_s(at) for server in self.servers])
        if any(server.heat for server in self.servers):
            course.temp_c.append([server.heat.temp_c(at) if server.heat else None for server in self.servers])
