"""A request on its way."""

from __future__ import annotations

import math
from collections.abc import Sequence

from orchestrator.queueing.requests import LATE


class Request:
    """One inference that somebody wants. Times are seconds; `intended` is what latency counts from."""

    __slots__ = (
        "admitted",
        "behind",
        "client",
        "deadline",
        "drawn",
        "energy_j",
        "expected_s",
        "first_at",
        "intended",
        "kind",
        "left",
        "number",
        "priority",
        "prompt",
        "route",
        "served_s",
        "size_s",
        "started",
        "station",
        "tokens",
        "travel_s",
        "whole",
    )

    def __init__(self, number: int, kind: int, intended: float) -> None:
        self.number = number
        self.kind = kind
        """Index of its class."""
        self.intended = intended
        self.admitted = intended
        self.started = math.nan
        self.priority = 0
        self.deadline = math.inf
        self.expected_s = 0.0
        """Mean time of its class on a server of speed 1."""
        self.size_s: float | None = None
        """Its own time on such a server, where it is known before it is served: in a simulation."""
        self.served_s = 0.0
        self.energy_j = 0.0
        self.travel_s = 0.0
        self.left = 1.0
        """The share that is not served yet."""
        self.drawn: tuple[object, float] | None = None
        """The server from whose times its own was drawn, and that time: where servers have times of their own."""
        self.prompt = self.tokens = 0
        """The tokens that it asks with, and that it generates; 0: it generates none."""
        self.behind = math.nan
        """The share of its service that comes behind its first token."""
        self.first_at = math.nan
        """The time of its first token, where it does not follow from that."""
        self.client = -1
        """The client of a closed loop."""
        self.station = 0
        """The station that serves it."""
        self.route: list[tuple[int, float | None]] = []
        """The stations of a network that are still to be visited, the next one last, and its size at each."""
        self.whole: Request | None = None
        """The request whose visit to a station this is; None: of a request that is served once."""

    def visit(self, number: int, now: float) -> Request:
        """The next visit on its route, which begins now."""
        found = Request(number, self.kind, now)
        found.station, found.size_s = self.route.pop()
        found.priority, found.deadline, found.expected_s = self.priority, self.deadline, self.expected_s
        found.whole = self
        return found

    def add(self, visit: Request) -> None:
        """Count what a visit took, which is over."""
        self.served_s += visit.served_s
        self.energy_j += visit.energy_j
        self.travel_s += visit.travel_s
        if math.isnan(self.started):
            self.started = visit.started

    def row(self, ended: float, server: int, outcome: int, travel_s: float) -> tuple[float, ...]:
        """Its row of the table of requests, as `COLUMNS` names them."""
        return (
            self.intended, self.admitted, self.started, ended, self.served_s, self.energy_j,
            server, self.kind, outcome, ended > self.deadline or outcome == LATE, travel_s,
            ended - self.served_s * self.behind if math.isnan(self.first_at) else self.first_at, self.tokens,
        )  # fmt: skip


def end_together(batch: Sequence[Request]) -> None:
    """Let answers of a batch have their first tokens at the same time: all prompts are read first."""
    if len(batch) > 1 and batch[0].tokens:
        sizes = [request.size_s or 0.0 for request in batch]
        behind = sum(size * request.behind for size, request in zip(sizes, batch, strict=True)) / sum(sizes)
        for request in batch:
            request.behind = behind
