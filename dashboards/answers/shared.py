"""Answers that cost much, shared by all who may see the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
LONGEST_S = 60.0


class Shared(Generic[T]):
    """Keeps what was made under each key for `share` times as long as it took. One at a time is made, so that all
    together take no more of a core than that. A key names all that decides who may see it."""

    def __init__(self, share: float) -> None:
        self._share, self._lock = share, Lock()
        self._found: dict[Hashable, tuple[float, T]] = {}
        """Key -> until when it counts, by the monotonic clock, and what was made."""

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what counts still, or make it. Raises what `make` raises."""
        with self._lock:
            began = time.monotonic()
            self._found = {each: found for each, found in self._found.items() if found[0] > began}
            if key not in self._found:
                made = make()
                ended = time.monotonic()
                self._found[key] = ended + min(LONGEST_S, self._share * (ended - began)), made
                return made
            return self._found[key][1]
