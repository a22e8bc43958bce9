"""Periodic work, and the marks in Redis by which one of several processes begins it, however many beats send its task.

A mark is the moment, by Redis' clock, before which nobody else is to begin a work. All of it may be lost: what a work
does is safe to do twice, and a work without a mark is due.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from redis import Redis

from orchestrator.coordination import functions, keys
from orchestrator.coordination.client import translated
from orchestrator.model.errors import ServiceDown

HOLD_S = 10.0
"""The time after which another may begin a work whose process has died in it; renewed while it works."""
LATE_S = 3.0
"""A work that nobody has begun for so long after it was due has no beat, or nobody who does it."""


class Work(NamedTuple):
    """Work that is done again and again."""

    name: str
    period_s: float

    @property
    def task(self) -> str:
        return f"farm.{self.name}"


NIGHTS = Work("nights", 2.0)
"""Nights that are due begin, and those under way are brought forward; which are due says the ledger."""
SWEEP = Work("sweep", 2.0)
"""The next keys of Redis are looked at (sweep.py)."""
ADMIT = Work("admit", 2.0)
"""Hosts that are let in are put into the indices again, which Redis may have lost."""
WEBHOOKS = Work("webhooks", 5.0)
"""Webhooks are told what has ended."""
WORKS = (NIGHTS, SWEEP, ADMIT, WEBHOOKS)


class Periodic:
    """The marks of periodic work. Raises ServiceDown where Redis is away."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @translated
    def take(self, work: Work, hold_s: float, late_s: float = 0.0) -> bool:
        """Return whether a work is to be done now, and has been due for `late_s`; nobody else does it for `hold_s`."""
        return bool(functions.call(self._redis, "take", (keys.periodic(work.name),), (hold_s, late_s)))

    @contextmanager
    def turn(self, work: Work, late_s: float = 0.0) -> Iterator[bool]:
        """The same for as long as the work inside takes, and half its period: beats are not that exact."""
        if not self.take(work, HOLD_S, late_s):
            yield False
            return
        over = threading.Event()
        holding = threading.Thread(target=self._hold, args=(work, over), name=f"hold-{work.name}", daemon=True)
        holding.start()
        try:
            yield True
        finally:
            over.set()
            holding.join()

    def _hold(self, work: Work, over: threading.Event) -> None:
        """Renew a mark until the work is over; where Redis is away, another may begin it as well."""
        while not over.wait(HOLD_S / 3):
            with suppress(ServiceDown):
                self._mark(work, HOLD_S)
        with suppress(ServiceDown):
            self._mark(work, work.period_s / 2)

    @translated
    def _mark(self, work: Work, hold_s: float) -> None:
        functions.call(self._redis, "take", (keys.periodic(work.name),), (hold_s, ""))
