"""Drive the dispatcher by this host's clock; phones serve."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, TypeAlias

import numpy as np

from orchestrator.model.errors import FarmError, TransportLost
from orchestrator.model.event import Served
from orchestrator.queueing.demand import STREAMS, Demand
from orchestrator.queueing.dispatch import Dispatcher, Request, Server
from orchestrator.queueing.policies import make_policy
from orchestrator.queueing.requests import DONE, LOST, Course, Requests, Rows, Run
from orchestrator.queueing.service_times import make_servers, rules_of
from orchestrator.queueing.spec import ClosedArrivals, QueueingSpec

from .ears import Ears
from .energy import fill_course, fill_energy, trace_of, why_coarse
from .station import NS_PER_S, Station
from .undisturbed import undisturbed
from .wire import Wire

Act: TypeAlias = Callable[[float, float, Any, int], None]
"""An event: planned time, actual time, target, a number more."""
POINTS = 1000
LOOK_S = 1.0
LAST_READINGS_S = 3.0
"""The time for which the phones' last readings are awaited: an agent writes them together, every second."""
DRAIN_S = 60.0
"""The time after the last arrival in which those that still wait are served, or as long as requests arrived."""


@dataclass(frozen=True)
class LiveRun:
    """A run, and when it was."""

    run: Run
    began_at: float
    """Unix time."""
    gone: tuple[str, ...] = ()
    """Serials of phones that went away."""
    given_up: bool = False
    """Its time was over before all were served: the others are lost."""


def run_live(
    spec: QueueingSpec,
    seed: np.random.SeedSequence,
    wires: Sequence[Wire],
    measured_s: Sequence[Sequence[float | None]] = (),
    check: Callable[[], None] = lambda: None,
) -> LiveRun:
    """One run on phones, one wire for each server of the spec in its order. The same seed gives the same arrivals and
    sizes as in a simulation.

    `measured_s`: by server and class what a request takes there, where phones compute it. `check`, called every second,
    raises what is to end the run. A phone that goes away is no error: what it served is lost, and the run goes on.
    """
    return _Live(spec, seed, wires, measured_s, check).run()


class _Live:
    """Runs the dispatcher in real time, on phones."""

    def __init__(
        self,
        spec: QueueingSpec,
        seed: np.random.SeedSequence,
        wires: Sequence[Wire],
        measured_s: Sequence[Sequence[float | None]],
        check: Callable[[], None],
    ) -> None:
        self._spec, self._check = spec, check
        policy_seed, *seeds = seed.spawn(1 + STREAMS * len(spec.classes))
        self._demand, self._rules = Demand(spec, seeds), rules_of(spec)
        made = make_servers(spec, policy_seed.spawn(1)[0], measured_s)
        self._stations = [Station(*own, wire) for own, wire in zip(made, wires, strict=True)]
        policy = make_policy(spec.policy, int(policy_seed.generate_state(1)[0]))
        self._dispatcher = Dispatcher([each.server for each in self._stations], policy, self._rules, self)
        self._means = _mean_by_class([each.server for each in self._stations], len(spec.classes))
        self._ears = Ears(dict(enumerate(wires)))
        self._events: list[tuple[float, int, Act, Any, int]] = []
        self._number = self._open = 0
        self._rows, self._course = Rows(), Course()
        self._overhead_s: dict[int, float] = {}
        self._overheads: list[float] = []
        self._look_at = math.inf
        self._waited_s = self._last = self._zero = 0.0
        self._doubts: list[str] = []
        self._given_up = False
        self._preemptions = 0

    def run(self) -> LiveRun:
        """Run until all that arrived is over, or the time for it."""
        self._plan_first()
        try:
            with undisturbed():
                began_at, self._zero = time.time(), time.monotonic()
                while self._is_open() or (
                    self._events and self._events[0][0] < self._spec.duration
                ):  # also where it is late
                    self._turn()
        finally:
            self._ears.close()
        while len(self._course.at) < POINTS:
            self._note(self._spec.duration / POINTS * (len(self._course.at) + 1))
        gone = tuple(each.wire.serial for each in self._stations if each.server.gone)
        return LiveRun(self._with_energy(self._rows.table()), began_at, gone, self._given_up)

    def _is_open(self) -> bool:
        """Return whether a request is open, or a phone still serves one given up: the next run finds it idle."""
        return self._open > 0 or any(each.asked and not each.server.gone for each in self._stations)

    def _with_energy(self, table: Requests) -> Run:
        stations = self._stations
        end = time.monotonic() + LAST_READINGS_S
        while time.monotonic() < end and any(each.is_ahead_of_its_readings() for each in stations):
            time.sleep(LAST_READINGS_S / 100)
        traces = [trace_of(each.wire.readings, each.wire.gauge) for each in stations]
        fill_energy(table.rows, [each.windows for each in stations], traces)
        for each, trace in zip(stations, traces, strict=True):
            if trace is not None and (why := why_coarse(each.windows, trace)):
                self._doubts.append(f"{each.wire.serial}: {why}")
        fill_course(self._course, [each.clock_s for each in stations], traces)
        return Run(
            table, self._course, self._spec.duration, self._waited_s, self._preemptions, np.array(self._overheads),
            tuple(self._doubts),
        )  # fmt: skip

    def _now(self) -> float:
        return time.monotonic() - self._zero

    def _plan_first(self) -> None:
        for kind, moments in enumerate(self._demand.moments):
            if isinstance(self._spec.classes[kind].arrivals, ClosedArrivals):
                for client, at in enumerate(moments):
                    self._plan(at, self._arrive, kind, client)
            else:
                self._plan_next(kind)
        self._plan(LOOK_S, self._look_after, None)
        for point in range(1, POINTS + 1):
            self._plan(point * self._spec.duration / POINTS, self._point, None)

    def _turn(self) -> None:
        """Whatever is due, then whoever speaks; else wait for the next of the two."""
        now = self._now()
        if self._events and self._events[0][0] <= now:
            at, _, act, subject, extra = heappop(self._events)
            act(at, now, subject, extra)
            wait_s = 0.0
        else:
            wait_s = self._events[0][0] - now if self._events else LOOK_S
        for number in self._ears.listen(wait_s):
            self._hear(self._stations[number])

    def _plan(self, at: float, act: Act, subject: Any, extra: int = 0) -> None:
        self._number += 1
        heappush(self._events, (at, self._number, act, subject, extra))

    def _plan_next(self, kind: int) -> None:
        at = next(self._demand.moments[kind], None)
        if at is not None and at < self._spec.duration:
            self._plan(at, self._arrive, kind, -1)

    def _arrive(self, at: float, now: float, kind: int, client: int) -> None:
        if at >= self._spec.duration:
            return
        request = self._demand.request(kind, at, client)
        request.admitted = now
        if self._spec.classes[kind].infer is not None:
            request.expected_s = self._means[kind]
        self._open += 1
        if client < 0:
            self._plan_next(kind)
        self._count(now)
        self._dispatcher.arrive(request, now)
        self._overhead_s[request.number] = self._now() - at

    def _hear(self, station: Station) -> None:
        heard = self._now()
        try:
            for answer in station.wire.answers():
                self._answered(station, answer, heard)
        except FarmError as e:
            self._lose(station, str(e))

    def _answered(self, station: Station, answer: Served, heard: float) -> None:
        now = self._now()
        done = station.answered(answer, now)
        if done is None or answer.status != "ok":
            raise TransportLost(f"it answers request {answer.id} with {answer.status}, which it was not asked")
        if self._given_up:
            return
        station.clock_s = max(station.clock_s, answer.end_ns / NS_PER_S - heard)
        batch, inferences = done.batch, self._spec.classes[done.batch[0].kind].inferences or 1
        if done.left > 1:
            batch[0].left = (done.left - 1) / inferences
            if not done.cut:
                self._ask(station, batch, now)
                return
            self._preemptions += 1
            if self._spec.preemption == "restart":
                batch[0].left = 1.0
            self._count(now)
            self._dispatcher.interrupted(station.server, now)
            return
        for request in batch:
            self._over(request, now, station.server.index, DONE, request.travel_s)
        self._count(now)
        self._dispatcher.finished(station.server, now)
        mine_s = self._now() - heard
        self._overheads += [self._overhead_s.pop(request.number, 0.0) + mine_s for request in batch]

    def _lose(self, station: Station, why: str) -> None:
        """A phone has gone: what it served is lost, and the others go on."""
        if station.server.gone:
            return
        now = self._now()
        self._doubts.append(f"{station.wire.serial} went away after {now:.3g} s: {why}")
        self._ears.forget(station.wire)
        station.wire.shut()
        station.late_at = math.inf
        for request in station.server.running:
            self._over(request, now, station.server.index, LOST)
        self._count(now)
        self._dispatcher.lose(station.server, now)

    def _look_after(self, at: float, now: float, _: None, __: int) -> None:
        """Every second: does everybody answer, is it over?"""
        self._check()
        for station in self._stations:
            if now > station.late_at:
                self._lose(station, "it does not answer")
        end = self._spec.duration + max(DRAIN_S, self._spec.duration)
        if now > end and not self._given_up:
            self._give_up(now)
        if self._is_open() or now < self._spec.duration:
            self._plan(max(now, at + LOOK_S), self._look_after, None)

    def _give_up(self, now: float) -> None:
        """All that is open is lost. The phones stay; what they serve ends, and nobody counts it."""
        self._given_up = True
        self._doubts.append(
            f"{self._open} requests were not served {now - self._spec.duration:.3g} s after the last arrival, and are "
            "lost: more phones, or less load"
        )
        self._count(now)
        for station in self._stations:
            for request in station.server.running:
                self._over(request, now, station.server.index, LOST)
        self._dispatcher.end(now)
        self._events.clear()

    def _point(self, at: float, now: float, _: None, __: int) -> None:
        self._count(now)
        self._note(at)

    def _note(self, at: float) -> None:
        course = self._course
        course.at.append(at)
        course.waiting.append(self._dispatcher.waiting)
        course.waited_s.append(self._waited_s)
        course.busy_s.append([each.served_s for each in self._stations])
        course.temp_c.append([each.gauge.known_c() for each in self._stations])

    def _count(self, now: float) -> None:
        """Add up what waited; called before the number that waits changes."""
        self._waited_s += self._dispatcher.waiting * (now - self._last)
        self._last = now

    def _look(self, at: float, now: float, _: None, __: int) -> None:
        if at >= self._look_at:
            self._look_at = math.inf
            self._count(now)
            self._dispatcher.look(now)

    def _over(self, request: Request, now: float, server: int, outcome: int, travel_s: float = 0.0) -> None:
        self._open -= 1
        self._rows.add(request.row(now, server, outcome, travel_s))
        think_s = self._demand.think_s(request.kind)
        if think_s is not None:
            self._plan(now + think_s, self._arrive, request.kind, request.client)

    def start(self, server: Server, batch: list[Request], now: float) -> None:
        station = self._stations[server.index]
        for request in batch:
            if math.isnan(request.started):
                request.started = now
        self._ask(station, batch, now)

    def _ask(self, station: Station, batch: list[Request], now: float) -> None:
        try:
            station.ask(self._spec, batch, self._rules.batch_factor(len(batch)), now)
        except FarmError as e:
            why = str(e)  # the dispatcher is in the middle of its work
            self._plan(now, lambda _at, _now, _subject, _extra: self._lose(station, why), None)

    def stop(self, server: Server, now: float) -> bool:  # noqa: ARG002
        asked = self._stations[server.index].asked
        if asked is not None:
            asked.cut = True
        return False

    def drop(self, request: Request, now: float, outcome: int) -> None:
        self._over(request, now, -1, outcome)
        self._overhead_s.pop(request.number, None)

    def wake(self, at: float) -> None:
        if at < self._look_at:
            self._look_at = at
            self._plan(at, self._look, None)


def _mean_by_class(servers: Sequence[Server], classes: int) -> list[float]:
    return [float(np.mean([server.expected_s[kind] for server in servers])) for kind in range(classes)]
