"""What requests of a spec are wanted, and when: the same for a simulation and a live run with the same seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .arrivals import arrival_times
from .dispatch import Request
from .draws import Draws, draws_of
from .spec import ClosedArrivals, QueueingSpec

STREAMS = 3
"""Seeds that each class takes: of its arrivals, sizes and think times."""


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
        """By class: of a closed loop the first arrival of each client, else all arrivals."""
        self._sizes: list[Draws | None] = [
            None if each.service is None else draws_of(each.service, random)
            for each, random in zip(spec.classes, randoms[count : 2 * count], strict=True)
        ]
        self._thinks = [
            draws_of(each.arrivals.think, random) if isinstance(each.arrivals, ClosedArrivals) else None
            for each, random in zip(spec.classes, randoms[2 * count :], strict=True)
        ]
        self._number = 0

    def request(self, kind: int, at: float, client: int) -> Request:
        """The next request of a class, with its size where the class has one; `at`: its intended arrival."""
        of, sizes = self._spec.classes[kind], self._sizes[kind]
        self._number += 1
        request = Request(self._number, kind, at)
        request.priority, request.client = of.priority, client
        if of.deadline is not None:
            request.deadline = at + of.deadline
        if sizes is not None:
            request.size_s, request.expected_s = next(sizes), of.service.mean  # type: ignore[union-attr]
        return request

    def think_s(self, kind: int) -> float | None:
        """How long a client of a closed loop thinks now; None for other classes."""
        thinks = self._thinks[kind]
        return None if thinks is None else next(thinks)
