"""Bound how often somebody may try to log in: by name, and by the address from which they try."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True)
class Bound:
    """A number of attempts that fail, of which one is forgotten after a time."""

    most: int
    forgotten_s: float


BY_NAME, BY_ADDRESS = Bound(8, 60.0), Bound(40, 15.0)
MOST_KEYS = 20_000
"""Names and addresses that are remembered: those longest without a failure are forgotten first."""


class Attempts:
    """Attempts that failed. Threads may share them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._failed: dict[tuple[Bound, str], tuple[float, float]] = {}
        """Key -> failures that are not forgotten, and when that was so; in order of the last failure."""

    def begin(self, name: str, address: str) -> float:
        """Return 0 and count an attempt as one that failed, until it went well; else the time to wait before it.

        Counted at its begin, a hundred at the same moment are no more than one after the other.
        """
        with self._lock:
            keys = [(BY_NAME, name[:100])] * bool(name) + [(BY_ADDRESS, address[:100])]
            if wait_s := max(map(self._wait_s, keys)):
                return wait_s
            for key in keys:
                self._count(key, 1.0)
            while len(self._failed) > MOST_KEYS:
                del self._failed[next(iter(self._failed))]
            return 0.0

    def went_well(self, name: str, address: str) -> None:
        """Forget what failed under a name, whose person is there now; an address has others behind it."""
        with self._lock:
            self._failed.pop((BY_NAME, name[:100]), None)
            self._count((BY_ADDRESS, address[:100]), -1.0)

    def _count(self, key: tuple[Bound, str], more: float) -> None:
        failures = max(0.0, self._failures(key) + more)
        self._failed.pop(key, None)
        self._failed[key] = failures, self._clock()

    def _failures(self, key: tuple[Bound, str]) -> float:
        failures, at = self._failed.get(key, (0.0, 0.0))
        return max(0.0, failures - (self._clock() - at) / key[0].forgotten_s)

    def _wait_s(self, key: tuple[Bound, str]) -> float:
        return max(0.0, (self._failures(key) - key[0].most + 1.0) * key[0].forgotten_s)
