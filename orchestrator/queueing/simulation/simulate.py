"""Drive the dispatcher in virtual time, from a heap of what happens next."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, TypeAlias

import numpy as np

from orchestrator.model.errors import SpecError
from orchestrator.queueing.demand import STREAMS, Demand
from orchestrator.queueing.dispatch import Dispatcher, Request, Server
from orchestrator.queueing.policies import make_policy
from orchestrator.queueing.requests import DONE, Rows, Run
from orchestrator.queueing.service_times import rules_of
from orchestrator.queueing.spec import ClosedArrivals, QueueingSpec

from .fleet import Fleet
from .sharing import SharedServer, shared

Act: TypeAlias = Callable[[float, Any, int], None]
"""An event at a moment, for a request, a class or a server by its number, with a number more."""
POINTS = 1000
"""Moments of the course."""


def simulate(spec: QueueingSpec, seed: np.random.SeedSequence) -> Run:
    """One run of the spec. The same seed gives the same arrivals and sizes under every policy. Raises SpecError."""
    return _Simulation(spec, seed).run()


class _Simulation:
    """Runs the dispatcher in virtual time."""

    def __init__(self, spec: QueueingSpec, seed: np.random.SeedSequence) -> None:
        self._spec = spec
        policy_seed, *seeds = seed.spawn(1 + STREAMS * len(spec.classes))
        self._demand = Demand(spec, seeds)
        self._rules = rules_of(spec)
        self._fleet = Fleet(spec, policy_seed.spawn(1)[0])
        if self._rules.continuous:
            self._fleet.servers = [shared(each, self._rules.batch_factor) for each in self._fleet.servers]
        self._dispatchers: list[Dispatcher] = []
        for at, state in enumerate(policy_seed.generate_state(max(1, len(spec.stations))).tolist()):
            own = [each.server for each in self._fleet.servers if each.station == at]
            self._dispatchers.append(Dispatcher(own, make_policy(spec.policy, state), self._rules, self))
        self._visits = [Rows() for _ in spec.stations]
        self._events: list[tuple[float, int, Act, Any, int]] = []
        self._number = 0
        self._rows = Rows()
        self._admitting_until = 0.0
        self._look_at = float("inf")
        self._preemptions = 0

    def run(self) -> Run:
        """Simulate until all that arrived is over."""
        events = self._events
        for kind, moments in enumerate(self._demand.moments):
            if isinstance(self._spec.classes[kind].arrivals, ClosedArrivals):
                for client, at in enumerate(moments):
                    self._plan(at, self._arrive, kind, client)
            else:
                self._plan_next(kind)
        course, waiting = self._fleet.course, 0
        step = self._spec.duration / POINTS
        next_point = step
        last = waited_s = 0.0
        while events:
            now, _, act, subject, extra = heappop(events)
            while now >= next_point and next_point <= self._spec.duration + step / 2:
                self._fleet.note(next_point, waiting, waited_s + waiting * (next_point - last))
                next_point = step * (len(course.at) + 1)
            waited_s += waiting * (now - last)
            last = now
            act(now, subject, extra)
            waiting = sum(each.waiting for each in self._dispatchers)
        if waiting:
            raise SpecError(
                f"policy {self._spec.policy.name or self._spec.policy.file} lets {waiting} requests "
                "wait for ever, though nothing more happens",
                remedy="look at what it waits for: a phone never gets cooler than its ambient temperature",
            )
        while len(course.at) < POINTS:
            self._fleet.note(step * (len(course.at) + 1), 0, waited_s)
        doubts = tuple(filter(None, (server.beyond for server in self._fleet.servers)))
        visits = tuple(each.table() for each in self._visits)
        return Run(
            self._rows.table(), course, self._spec.duration, waited_s, self._preemptions, doubts=doubts, visits=visits
        )

    def _plan(self, at: float, act: Act, subject: int | Request, extra: int = 0) -> None:
        self._number += 1
        heappush(self._events, (at, self._number, act, subject, extra))

    def _plan_next(self, kind: int) -> None:
        at = next(self._demand.moments[kind], None)
        if at is not None and at < self._spec.duration:
            self._plan(at, self._arrive, kind, -1)

    def _arrive(self, now: float, kind: int, client: int) -> None:
        if now >= self._spec.duration:
            return
        request = self._demand.request(kind, now, client)
        if client < 0:
            self._plan_next(kind)
        if self._spec.overhead:
            self._admitting_until = max(now, self._admitting_until) + self._spec.overhead
            self._plan(self._admitting_until, self._admit, request)
        else:
            self._enter(request, now)

    def _admit(self, now: float, request: Request, _: int) -> None:
        request.admitted = now
        self._enter(request, now)

    def _enter(self, request: Request, now: float) -> None:
        """Send a request to the next station on its route, or to the servers where there is no network."""
        if request.route:
            request = self._demand.visit(request, now)
        self._dispatchers[request.station].arrive(request, now)

    def _end(self, now: float, index: int, epoch: int) -> None:
        server = self._fleet.servers[index]
        if server.epoch != epoch:
            return  # it was interrupted
        batch, served_s = server.server.running, server.served_s(now)
        server.rest(now)
        energy_j, travel_s = server.energy_j(now) / len(batch), server.travel_s
        self._dispatchers[server.station].finished(server.server, now)
        for request in batch:
            request.served_s += served_s
            request.energy_j += energy_j
            self._over(request, now, index, DONE, travel_s)

    def _leave(self, now: float, index: int, epoch: int) -> None:
        """A request leaves those that a server runs together."""
        body = self._fleet.servers[index]
        assert isinstance(body, SharedServer)
        if body.epoch != epoch:
            return  # somebody came or went since
        request = body.leave(now)
        self._dispatchers[body.station].left(body.server, request, now)
        self._plan_leave(body)
        self._over(request, now, index, DONE)

    def _plan_leave(self, body: SharedServer) -> None:
        if (at := body.next_end()) < float("inf"):
            self._plan(at, self._leave, body.server.index, body.epoch)

    def _look(self, now: float, _: int, __: int) -> None:
        if now >= self._look_at:
            self._look_at = float("inf")
            for each in self._dispatchers:
                each.look(now)

    def _over(self, request: Request, now: float, server: int, outcome: int, travel_s: float = 0.0) -> None:
        if (whole := request.whole) is not None:
            request.travel_s = travel_s
            self._visits[request.station].add(request.row(now, server, outcome, travel_s))
            whole.add(request)
            if outcome == DONE and whole.route:
                self._enter(whole, now)
                return
            request, travel_s = whole, whole.travel_s
        self._rows.add(request.row(now, server, outcome, travel_s))
        think_s = self._demand.think_s(request.kind)
        if think_s is not None:
            self._plan(now + think_s, self._arrive, request.kind, request.client)

    def start(self, server: Server, batch: list[Request], now: float) -> None:
        body = self._fleet.servers[server.index]
        for request in batch:
            if request.started != request.started:  # not yet: NaN
                request.started = now
        if isinstance(body, SharedServer):
            body.join(batch[0], now)
            self._plan_leave(body)
            return
        self._plan(body.work(batch, self._rules.batch_factor(len(batch)), now), self._end, server.index, body.epoch)

    def stop(self, server: Server, now: float) -> bool:
        body, request = self._fleet.servers[server.index], server.running[0]
        inferences = self._spec.classes[request.kind].inferences
        if inferences is None:
            self._interrupt(server, max(0.0, body.ends - now) / (body.ends - body.began) * request.left, now)
            return True
        border, left = body.border(round(request.left * inferences), now)
        if left:
            self._plan(border, self._cut, server.index, body.epoch)
        return False

    def _cut(self, now: float, index: int, epoch: int) -> None:
        """Interrupt a server between two inferences."""
        body = self._fleet.servers[index]
        if body.epoch == epoch:
            request = body.server.running[0]
            inferences = self._spec.classes[request.kind].inferences or 1
            left = round((body.ends - now) / (body.ends - body.began) * request.left * inferences)
            self._interrupt(body.server, left / inferences, now)
            self._dispatchers[body.station].interrupted(body.server, now)

    def _interrupt(self, server: Server, left: float, now: float) -> None:
        body, request = self._fleet.servers[server.index], server.running[0]
        self._preemptions += 1
        if self._spec.preemption == "resume":
            request.left = left
        request.served_s += body.served_s(now)
        request.energy_j += body.energy_j(now)
        body.rest(now)
        body.epoch += 1

    def drop(self, request: Request, now: float, outcome: int) -> None:
        self._over(request, now, -1, outcome)

    def wake(self, at: float) -> None:
        if at < self._look_at:
            self._look_at = at
            self._plan(at, self._look, 0)
