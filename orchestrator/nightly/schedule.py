"""The moments of a schedule. Celery's crontab does the arithmetic, in local time."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

FORM = "`02:30` (every day), or five fields of cron: `30 2 * * mon-fri`"


def cron_of(text: str) -> str:
    """The five fields of a schedule. Raises ValueError."""
    from celery.schedules import ParseException, crontab

    if of_day := re.fullmatch(r"\s*(\d{1,2}):(\d{2})\s*", text):
        text = f"{int(of_day[2])} {int(of_day[1])} * * *"
    fields = " ".join(text.split())
    try:
        if len(text.split()) != 5:
            raise ValueError(f"it has {len(text.split())} fields")
        crontab.from_string(fields)
    except (ValueError, TypeError, ParseException) as e:
        raise ValueError(f"expected {FORM}, got {text[:40]!r}: {e}") from e
    return fields


def is_moment(cron: str, at: float) -> bool:
    """Return whether the schedule is due at this very moment."""
    return following(cron, at - 0.5) == at


@cache
def _no_farm() -> Any:
    """Its settings are Celery's own: a schedule asks them for little, and never for a broker."""
    from celery import Celery

    return Celery("schedule", set_as_current=False)


def following(cron: str, after: float) -> float:
    """The first moment after this one at which the schedule is due (Unix time).

    Where the clock is put forward over it, it is due an hour later; where it is put back, at the first of the two.
    """
    from celery.schedules import crontab

    wall = datetime.fromtimestamp(after).replace(tzinfo=UTC)  # the clock on the wall, on which fields of cron go
    minute, hour, day, month, weekday = cron.split()
    fields = crontab(minute, hour, weekday, day, month, nowfun=lambda: wall, app=_no_farm())
    last, delta, _ = fields.remaining_delta(wall, tz=UTC)
    due: datetime = (last + delta).replace(tzinfo=None)
    moments = (due.replace(fold=fold).timestamp() for fold in (0, 1))
    return next((moment for moment in moments if moment > after), due.timestamp())


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
    """Return what was due after the last night that is known, and until now: a night that may still begin, and those
    that were missed."""
    moments: deque[float] = deque(maxlen=MOST_MISSED)
    count, moment = 0, following(cron, after)
    while moment <= now:
        moments.append(moment)
        count, moment = count + 1, following(cron, moment)
    begin = moments.pop() if moments and now < moments[-1] + LATEST_START * budget_s else None
    return Due(tuple(moments), begin, count - len(moments) - (begin is not None))
