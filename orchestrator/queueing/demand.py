"""The requests that a spec wants, and when: the same for a simulation and a live run with the same seeds."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from .arrivals import arrival_times
from .dispatch import Request
from .draws import Draws, draws_of, texts_of
from .spec import LEAVE, Answer, ClosedArrivals, QueueingSpec

STREAMS = 4
"""Seeds that each class takes: of its arrivals, sizes, think times and routes."""


class Demand:
    """Arrivals of each class, and the requests that arrive."""

    def __init__(self, spec: QueueingSpec, seeds: Sequence[np.random.SeedSequence]) -> None:
        """`seeds`: `STREAMS` of each class."""
        self._spec, count = spec, len(spec.classes)
        randoms = [np.random.default_rng(each) for each in seeds]
        self.moments: list[Iterator[float]] = [
            arrival_times(each.arrivals, each.name, random)
            for each, random in zip(spec.classes, randoms[:count], strict=True)
        ]
        """The moments by class: of a closed loop the first arrival of each client, else all arrivals."""
        self._sizes: list[Draws | None] = [
            None if each.service is None or isinstance(each.service, Answer) else draws_of(each.service, random)
            for each, random in zip(spec.classes, randoms[count : 2 * count], strict=True)
        ]
        self._texts = [
            texts_of(each.service, random) if isinstance(each.service, Answer) else None
            for each, random in zip(spec.classes, randoms[count : 2 * count], strict=True)
        ]
        self._thinks = [
            draws_of(each.arrivals.think, random) if isinstance(each.arrivals, ClosedArrivals) else None
            for each, random in zip(spec.classes, randoms[2 * count : 3 * count], strict=True)
        ]
        self._walks = randoms[3 * count :]
        names = [each.name for each in spec.stations]
        self._entries = [names.index(spec.entry(each)) for each in spec.classes] if names else []
        self._onward = [[names.index(to) if to != LEAVE else -1 for to in each.next] for each in spec.stations]
        self._shares = [list(accumulate(each.next.values())) for each in spec.stations]
        self._number = 0

    def request(self, kind: int, at: float, client: int) -> Request:
        """The next request of a class, with its size where the class has one; `at`: its intended arrival."""
        of, sizes, texts = self._spec.classes[kind], self._sizes[kind], self._texts[kind]
        self._number += 1
        request = Request(self._number, kind, at)
        request.priority, request.client = of.priority, client
        if of.deadline is not None:
            request.deadline = at + of.deadline
        if of.service is not None:
            request.expected_s = of.service.mean
        if texts is not None:
            prompt_s, behind_s, request.prompt, request.tokens = next(texts)
            request.size_s = prompt_s + behind_s
            request.behind = behind_s / request.size_s if request.size_s else 0.0
        if self._entries:
            request.route = [(station, None if sizes is None else next(sizes)) for station in self._walk(kind)][::-1]
        elif sizes is not None:
            request.size_s = next(sizes)
        return request

    def visit(self, whole: Request, now: float) -> Request:
        """The next visit on a request's route."""
        self._number += 1
        return whole.visit(self._number, now)

    def _walk(self, kind: int) -> Iterator[int]:
        """The stations that a request comes to, drawn when it arrives: they are the same under every policy."""
        station = self._entries[kind]
        while station >= 0:
            yield station
            shares = self._shares[station]
            station = self._onward[station][bisect(shares, self._walks[kind].random() * shares[-1])]

    def think_s(self, kind: int) -> float | None:
        """Return how long a client of a closed loop thinks now; None for other classes."""
        thinks = self._thinks[kind]
        return None if thinks is None else next(thinks)
