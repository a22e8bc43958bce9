"""The dispatcher. It is told what happens and when, and says through its hands what is to be done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.model.errors import SpecError
from orchestrator.queueing.requests import FULL, LATE, LOST

from .line import Line
from .policy import Later, Policy
from .request import Request, end_together
from .server import Server

SOON_S = 1e-6
"""The least that `Later` means: a policy that names this very moment must not hold the clock."""


@dataclass(frozen=True)
class Rules:
    """The rules under every policy."""

    batch_factor: Callable[[int], float]
    """The time of a batch of so many requests, as a multiple of one alone."""
    queue: int | None = None
    drop_late: bool = False
    batch_size: int = 1
    batch_window_s: float = 0.0
    preemption: bool = False
    continuous: bool = False


class Hands(Protocol):
    """The dispatcher's hands: in virtual time, or with phones."""

    def start(self, server: Server, batch: list[Request], now: float) -> None:
        """Begin to serve; `Dispatcher.finished` is called when all of it has been served."""
        ...

    def stop(self, server: Server, now: float) -> bool:
        """Interrupt what the server does; its `running` is still there. False: not yet. When the inference under way
        ends, either `Dispatcher.interrupted` is called, or, where it was the last, `finished`."""
        ...

    def drop(self, request: Request, now: float, outcome: int) -> None:
        """Turn it away: FULL, LATE (its deadline is over), or LOST (no server is left)."""
        ...

    def wake(self, at: float) -> None:
        """Call `Dispatcher.look` then."""
        ...


class Dispatcher:
    """Requests wait in one line for all servers, or in one for each, as the policy wants it."""

    def __init__(self, servers: Sequence[Server], policy: Policy, rules: Rules, hands: Hands) -> None:
        self._servers, self._policy, self._rules, self._hands = list(servers), policy, rules, hands
        self._line = Line()
        self._idle = {server.index: server for server in servers}
        self.waiting = 0
        """Requests in all lines."""
        policy.servers = self._servers

    def arrive(self, request: Request, now: float) -> None:
        """A request is here."""
        if not self._servers:
            self._hands.drop(request, now, LOST)
        elif self._policy.own_queues:
            server = self._policy.choose(request, self._servers, now)
            if not isinstance(server, Server) or server.gone:
                raise SpecError(
                    f"the policy answers {server!r} where it must name a server that is there",
                    remedy="with own_queues it answers one of `servers` at once; `Later` is for policies with one line",
                )
            self._enter(request, server.line, server, now)
        else:
            self._enter(request, self._line, None, now)

    def finished(self, server: Server, now: float) -> None:
        """The server has served all that it ran."""
        self._free(server)
        self._feed(server if self._policy.own_queues else None, now)

    def left(self, server: Server, request: Request, now: float) -> None:
        """One of those that the server runs together is over."""
        server.running.remove(request)
        self._idle[server.index] = server
        self._feed(server if self._policy.own_queues else None, now)

    def interrupted(self, server: Server, now: float) -> None:
        """Put back what the server ran: it is interrupted, some time after it was to be, and waits on."""
        self._put_back(server, now)
        self._feed(server if self._policy.own_queues else None, now)

    def lose(self, server: Server, now: float) -> None:
        """A server has gone for good; what it ran is no more. Who waited in its line waits elsewhere."""
        server.gone, server.running = True, []
        self._servers.remove(server)
        self._idle.pop(server.index, None)
        moved: list[Request] = []
        while server.line:
            moved += self._pop(server.line, server, 1)
        while self._line and not self._servers:
            moved += self._pop(self._line, None, 1)
        for request in moved:
            self.arrive(request, now)

    def end(self, now: float) -> None:
        """Nobody serves any more: what waits is lost, and what runs is no more."""
        for server in self._servers:
            server.running = []
        for line, own in [(self._line, None), *((server.line, server) for server in self._servers)]:
            while line:
                self._hands.drop(self._pop(line, own, 1)[0], now, LOST)

    def look(self, now: float) -> None:
        """Time has passed: a batch's window is over, a phone has cooled."""
        if self._policy.own_queues:
            for server in [each for each in self._idle.values() if each.line]:
                self._feed(server, now)
        else:
            self._feed(None, now)

    def _enter(self, request: Request, line: Line, server: Server | None, now: float) -> None:
        free = bool(self._idle) if server is None else self._has_room(server)
        takes_a_place = not free and self._rules.preemption and self._preempt(request, server, now)
        limit = self._rules.queue
        if limit is not None and len(line) >= limit and not takes_a_place and (line or not free):
            self._hands.drop(request, now, FULL)
            return
        self._push(request, line, server, now)
        self._feed(server, now)

    def _push(self, request: Request, line: Line, server: Server | None, now: float) -> None:
        line.push(request, self._policy.rank(request, now))
        self.waiting += 1
        if server is not None:
            server.queued_s += server.expected_s[request.kind] * request.left

    def _pop(self, line: Line, server: Server | None, most: int) -> list[Request]:
        taken = line.pop(most)
        self.waiting -= len(taken)
        if server is not None:
            server.queued_s = server.queued_s - sum(server.expected_s[r.kind] * r.left for r in taken) if line else 0.0
        return taken

    def _free(self, server: Server) -> None:
        server.running, server.stopping = [], False
        self._idle[server.index] = server

    def _preempt(self, request: Request, own: Server | None, now: float) -> bool:
        """Interrupt whoever runs with the least priority, if it is lower; whether one is, now or soon."""
        victims = [each for each in (self._servers if own is None else (own,)) if not each.stopping]
        if not victims:
            return False
        server = min(victims, key=lambda each: (each.running[0].priority, -each.running[0].started))
        if server.running[0].priority >= request.priority:
            return False
        if not self._hands.stop(server, now):
            server.stopping = True
        else:
            self._put_back(server, now)
        return True

    def _put_back(self, server: Server, now: float) -> None:
        stopped, own = server.running[0], server if self._policy.own_queues else None
        self._free(server)
        self._push(stopped, self._line if own is None else own.line, own, now)

    def _feed(self, own: Server | None, now: float) -> None:
        """Begin all that can begin."""
        line = self._line if own is None else own.line
        while line and (self._idle if own is None else self._has_room(own)):
            request = line.head()
            if self._rules.drop_late and now > request.deadline:
                self._hands.drop(self._pop(line, own, 1)[0], now, LATE)
                continue
            full_at = request.admitted + self._rules.batch_window_s
            if not self._rules.continuous and now < full_at and line.waiting_of(request.kind) < self._rules.batch_size:
                self._hands.wake(full_at)
                return
            server = self._policy.choose(request, self._with_room(), now) if own is None else own
            if isinstance(server, Later):
                self._hands.wake(max(server.at, now + SOON_S))
                return
            self._begin(server, self._pop(line, own, 1 if self._rules.continuous else self._rules.batch_size), now)

    def _has_room(self, server: Server) -> bool:
        return len(server.running) < (self._rules.batch_size if self._rules.continuous else 1)

    def _with_room(self) -> Collection[Server]:
        """Return the servers that can begin another request; those that run the fewest first."""
        if not self._rules.continuous:
            return self._idle.values()
        return sorted(self._idle.values(), key=lambda server: len(server.running))

    def _begin(self, server: Server, batch: list[Request], now: float) -> None:
        server.running = [*server.running, *batch]
        if not self._has_room(server):
            del self._idle[server.index]
        end_together(batch)
        first = batch[0]
        expected_s = server.expected_s[first.kind] * first.left * self._rules.batch_factor(len(server.running))
        server.busy_until = now + expected_s
        server.booked_j += expected_s * server.busy_w
        self._hands.start(server, batch, now)
