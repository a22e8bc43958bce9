"""Search the largest value of a dimension that a device bears: by doubling, then by bisection. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from orchestrator.model.experiment import LimitSearch

from .ended import Ended

REPEATS = 3
"""Jobs for a value that the farm lost each time, after which a search gives up."""
KILLS = 2
"""Kills of a value until it counts as one that does not run: something else may have taken the memory once."""


class Stand(NamedTuple):
    """The state of a search."""

    ran: frozenset[int]
    not_run: frozenset[int]
    """Values that are known not to run."""
    following: int | None = None
    """The value to try next, perhaps again; None: it is over."""
    stopped_at: int | None = None
    """The value that ended it without an answer."""

    @property
    def found(self) -> bool:
        """True if the search is over, with an answer."""
        return self.following is None and self.stopped_at is None


def stand(search: LimitSearch, probes: Mapping[int, Sequence[Ended]]) -> Stand:
    """Return where a search stands after these probes of each value."""
    ran = frozenset(value for value, ends in probes.items() if "ran" in ends)
    over = {value: ends for value, ends in probes.items() if value not in ran}
    not_run = frozenset(value for value, ends in over.items() if "refused" in ends or ends.count("killed") >= KILLS)
    for value, ends in over.items():
        if value in not_run:
            continue
        if "failed" in ends or "cancelled" in ends or ends.count("lost") >= REPEATS:
            return Stand(ran, not_run, stopped_at=value)
        return Stand(ran, not_run, following=value)
    return Stand(ran, not_run, following=next_value(search, ran, not_run))


def next_value(search: LimitSearch, ran: Collection[int], not_run: Collection[int]) -> int | None:
    """Return what to try after these values ran and those did not; None: the answer is as near as was asked for."""
    high = min(not_run, default=None)
    low = max((value for value in ran if high is None or value < high), default=None)
    if low is None and high is None:
        return None
    if high is None:
        assert low is not None
        return None if low >= search.most else min(2 * low, search.most)
    if low is None:
        halved = _step(search, high // 2)
        return halved if 0 < halved < high else None
    if high - low <= max(search.step, search.tolerance * low):
        return None
    middle = _step(search, (low + high) // 2)
    return middle if low < middle < high else None


def _step(search: LimitSearch, value: int) -> int:
    return value - value % search.step
