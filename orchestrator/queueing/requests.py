"""The table of requests: one row each, in plain columns; and the course of the run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]

COLUMNS = (
    *("intended", "admitted", "started", "ended", "served_s", "energy_j"),
    *("server", "kind", "outcome", "late", "travel_s", "first", "tokens"),
)
"""Seconds since the start; `served_s`: time in which it was served; `late`: 1 where it missed its deadline; `travel_s`:
time that the request and its answer travelled; `first`: when its first token was there, NaN where it has none."""
DONE, FULL, LATE, LOST = 0, 1, 2, 3
"""Outcomes: served; dropped because the queue was full, or because its deadline was over; lost with its server."""
CHUNK = 65536


class Rows:
    """Rows that are written one by one, kept in blocks of plain numbers."""

    def __init__(self) -> None:
        self._open: list[tuple[float, ...]] = []
        self._blocks: list[Column] = []

    def add(self, row: tuple[float, ...]) -> None:
        self._open.append(row)
        if len(self._open) == CHUNK:
            self._close()

    def table(self) -> Requests:
        """All rows, in the order of their intended arrival."""
        self._close()
        rows = np.concatenate(self._blocks)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return Requests(rows)

    def _close(self) -> None:
        self._blocks.append(np.array(self._open, dtype=np.float64).reshape(-1, len(COLUMNS)))
        self._open = []


@dataclass(frozen=True)
class Requests:
    """Every request of a run, by intended arrival."""

    rows: Column

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Column:
        found: Column = self.rows[:, COLUMNS.index(name)]
        return found

    def of(self, mask: NDArray[np.bool_]) -> Requests:
        return self if mask.all() else Requests(self.rows[mask])

    def between(self, begin: float, end: float) -> Requests:
        """Return the requests that were meant to arrive in a stretch of time."""
        first, last = np.searchsorted(self.column("intended"), (begin, end))
        return Requests(self.rows[first:last])

    @property
    def done(self) -> Requests:
        return self.of(self.column("outcome") == DONE)

    @property
    def sojourn_s(self) -> Column:
        """The time from the intended arrival, whenever the dispatcher came to admit it."""
        return self.column("ended") - self.column("intended")

    @property
    def first_token_s(self) -> Column:
        """The time from the intended arrival to the first token, of those that have one."""
        found = self.column("first") - self.column("intended")
        return found[np.isfinite(found)]

    @property
    def token_s(self) -> Column:
        """The mean time from one token to the next, of each request with several."""
        several = self.of(self.column("tokens") > 1)
        return (several.column("ended") - several.column("first")) / (several.column("tokens") - 1)

    @property
    def waiting_s(self) -> Column:
        """All of the sojourn in which nobody served it and it did not travel."""
        return np.maximum(0.0, self.sojourn_s - self.column("served_s") - self.column("travel_s"))


@dataclass
class Course:
    """The course of a run: what grew and what was, at moments that lie evenly."""

    at: list[float] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    """Requests that waited."""
    waited_s: list[float] = field(default_factory=list)
    """Time that requests had waited by then, all together."""
    busy_s: list[list[float]] = field(default_factory=list)
    """The time in which each server had served by then."""
    temp_c: list[list[float | None]] = field(default_factory=list)
    """The temperature by server."""
    energy_j: list[float] = field(default_factory=list)
    """The energy of all servers until then, as their gauges told; empty: no gauge did, or the servers are modelled."""


@dataclass(frozen=True)
class Run:
    """One run."""

    requests: Requests
    course: Course
    duration_s: float
    """Requests arrived for so long; the last ones ended later."""
    waited_s: float
    """The number that waited, over time: what the rows must add up to."""
    preemptions: int
    overhead_s: Column | None = None
    """The dispatcher's time for a live run's request: from its intended arrival until it was handled, and what was
    done at its end."""
    doubts: tuple[str, ...] = ()
    """The doubts about the run itself."""
    visits: tuple[Requests, ...] = ()
    """The visits of a network, by station: a row for each, which is meant to arrive when it enters the station."""
