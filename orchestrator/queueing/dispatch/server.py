"""A server as the dispatcher and its policies see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from .line import Line
from .request import Request


class Thermometer(Protocol):
    """A server's heat, as far as known: a model's in a simulation, the phone's own when it runs."""

    def temp_c(self, now: float) -> float:
        """The temperature now."""
        ...

    def cool_at(self, temp_c: float, now: float) -> float:
        """Return when an idle server will have cooled to this temperature; infinite where it never will."""
        ...


@dataclass(slots=True, eq=False)
class Server:
    """One phone. Policies read it and change nothing."""

    index: int
    name: str
    expected_s: list[float]
    """Mean time of a request alone, by class."""
    busy_w: float = 0.0
    thermometer: Thermometer | None = None
    line: Line = field(default_factory=Line)
    """Its own waiting requests; empty where all wait in one queue."""
    running: list[Request] = field(default_factory=list)
    busy_until: float = 0.0
    """The time when what runs is expected to end."""
    queued_s: float = 0.0
    """Expected time of all that waits in its line."""
    booked_j: float = 0.0
    """Energy of all that it has begun, as expected."""
    stopping: bool = False
    """`Hands.stop` said: not yet. When the inference under way ends, it is interrupted, or, where that was the last,
    has finished."""
    gone: bool = False
    """It has failed, and does not come back."""

    @property
    def in_system(self) -> int:
        """Requests that it serves or that wait for it."""
        return len(self.running) + len(self.line)

    def backlog_s(self, now: float) -> float:
        """Expected time until it has served all that it has."""
        return self.queued_s + (max(0.0, self.busy_until - now) if self.running else 0.0)

    def expected_j(self, request: Request) -> float:
        """Energy of serving this request."""
        return self.busy_w * self.expected_s[request.kind]
