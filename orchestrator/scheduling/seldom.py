"""Do what costs much seldom: so that it takes no more than a share of the time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Seldom:
    """Something is due again when its last cost is no more than `share` of the time since."""

    def __init__(self, share: float, free_s: float = 0.02) -> None:
        """Start as due; what costs less than `free_s` always is."""
        self._share, self._free_s = share, free_s
        self._cost_s, self._done_at = 0.0, float("-inf")

    @property
    def due(self) -> bool:
        """True if it may be done now."""
        return self._cost_s <= self._free_s or time.monotonic() - self._done_at >= self._cost_s / self._share

    @contextmanager
    def doing(self) -> Iterator[None]:
        """Measure the cost of the work inside."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._done_at = time.monotonic()
            self._cost_s = self._done_at - began
