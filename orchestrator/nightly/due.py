"""Tell which nights of a schedule are due: one that may still begin, and those that were missed. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from .schedule import following

LATEST_START = 0.5
"""Share of the budget: a night that would begin later is missed."""
MOST_MISSED = 14
"""Nights that are told one by one after a long absence; with older ones nobody can do anything any more."""


@dataclass(frozen=True)
class Due:
    """Moments at which a night should have begun (Unix time), the oldest first."""

    missed: tuple[float, ...] = ()
    begin: float | None = None
    """The newest one, where it is not too late for it."""
    forgotten: int = 0
    """Missed ones that are older than those that are told."""


def due(cron: str, after: float, now: float, budget_s: float) -> Due:
    """Return what was due after the last night that is known, and until now."""
    moments: deque[float] = deque(maxlen=MOST_MISSED)
    count, moment = 0, following(cron, after)
    while moment <= now:
        moments.append(moment)
        count, moment = count + 1, following(cron, moment)
    begin = moments.pop() if moments and now < moments[-1] + LATEST_START * budget_s else None
    return Due(tuple(moments), begin, count - len(moments) - (begin is not None))
