"""The calendar: who has which devices on the days to come."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from math import inf

from dashboards.web.page import Asked, Page
from orchestrator.acts import RIGHTS
from orchestrator.ledger import Hold

DAYS = 7
MOST_DEVICES = 100


def calendar(asked: Asked) -> Page:
    """`?from=` how many weeks are left out."""
    weeks = min(asked.number("from"), 520)
    first = date.today() + timedelta(days=DAYS * weeks)
    days = [first + timedelta(days=n) for n in range(DAYS + 1)]
    bounds = [datetime.combine(day, datetime.min.time()).timestamp() for day in days]
    by_device: dict[str, list[Hold]] = defaultdict(list)
    for each in asked.ledger().standing.reservations():
        if (each.begins or each.since) < bounds[-1] and (each.until or inf) > bounds[0]:
            by_device[each.serial].append(each)
    rows = [
        (serial, [hold.whose for hold in holds if hold.is_pool],
         [[_told(hold, *bounds[n : n + 2]) for hold in _on(holds, *bounds[n : n + 2])] for n in range(DAYS)])
        for serial, holds in sorted(by_device.items())
    ]  # fmt: skip
    reserved = [each for holds in by_device.values() for each in holds if each.is_reserved]
    ended = [each for each in reserved if asked.visitor.may(RIGHTS["unreserve"].needs, each.places)]
    data = {"days": [f"{day:%a %d %b}" for day in days[:DAYS]], "rows": rows[:MOST_DEVICES], "weeks": weeks,
            "more": max(0, len(rows) - MOST_DEVICES), "devices": [each.device.serial for each in asked.look().lanes],
            "open": ended}  # fmt: skip
    return Page("calendar.html.j2", "Calendar", "calendar", data)


def _on(holds: Sequence[Hold], begin: float, end: float) -> list[Hold]:
    """Return those of a day; a pool is for good, and told once."""
    on_day = [each for each in holds if (each.begins or each.since) < end and (each.until or inf) > begin]
    return [each for each in on_day if not each.is_pool]


def _told(hold: Hold, begin: float, end: float) -> dict[str, str]:
    since, until = hold.begins or hold.since, hold.until or inf
    first = "" if since <= begin else f"from {_clock(since)} "
    last = "" if until >= end else f"until {_clock(until)} "
    return {"when": f"{first}{last}" or "all day ", "whose": hold.whose, "note": hold.note, "number": str(hold.id)}


def _clock(unix_s: float) -> str:
    return time.strftime("%H:%M", time.localtime(unix_s))
