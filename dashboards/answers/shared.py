"""Answers that cost much, shared by all who may see the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from threading import Lock, Thread
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
LONGEST_S = 60.0


class Made(NamedTuple, Generic[T]):
    """An answer, until when it counts, and until when it is given while another is made; by the monotonic clock."""

    value: T
    counts: float
    given: float


class Shared(Generic[T]):
    """Keeps what was made under each key for `share` times as long as it took. One at a time is made, so that all
    together take no more of a core than that. For as long again who asks gets what is there, and does not wait for the
    next. A key names all that decides who may see it."""

    def __init__(self, share: float) -> None:
        self._share, self._lock = share, Lock()
        self._found: dict[Hashable, Made[T]] = {}

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what counts still, or make it. Raises what `make` raises."""
        now, found = time.monotonic(), self._found.get(key)
        if found is not None and now < found.given:
            if now >= found.counts and self._lock.acquire(blocking=False):
                Thread(target=self._renew, args=(key, make), daemon=True).start()
            return found.value
        with self._lock:
            return self._make(key, make)

    def _renew(self, key: Hashable, make: Callable[[], T]) -> None:
        try:
            with suppress(Exception):  # who asks when nothing is given any more meets it
                self._make(key, make)
        finally:
            self._lock.release()

    def _make(self, key: Hashable, make: Callable[[], T]) -> T:
        began, found = time.monotonic(), self._found.get(key)
        if found is not None and began < found.counts:
            return found.value  # made while this one waited
        made = make()
        ended = time.monotonic()
        kept_s = min(LONGEST_S, self._share * (ended - began))
        others = {each: other for each, other in self._found.items() if other.given > began}
        self._found = {**others, key: Made(made, ended + kept_s, ended + 2 * kept_s)}
        return made
