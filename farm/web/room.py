"""Room on the farm's disk for the files that hosts send: set apart before they come, counted as they do."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FREE_BYTES = 1 << 30
"""Of the disk, what a host's files leave to the farm."""
DAY_S = 86_400.0
HOST_BYTES = 32 << 30
"""What one host may send in a day."""
COPIES = 2
"""A file is there twice until its hash is known to be right."""


class NoRoom(Exception):
    """Why a file is not taken."""


class Room:
    """Of one disk, for one process; asked on its event loop alone."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._apart = folder, 0
        self._sent: Counter[str] = Counter()
        self._day = 0.0

    @contextmanager
    def set_apart(self, host: str, size: int) -> Iterator[None]:
        """Room for a file of this size. Raises NoRoom."""
        if time.monotonic() > self._day + DAY_S:
            self._sent.clear()
            self._day = time.monotonic()
        if shutil.disk_usage(self._folder).free - self._apart - COPIES * size < FREE_BYTES:
            raise NoRoom(f"the farm's disk has no room for {size} bytes")
        if self._sent[host] + size > HOST_BYTES:
            raise NoRoom(f"host {host} has sent {self._sent[host]} bytes within a day, and may send {HOST_BYTES}")
        self._sent[host] += size
        self._apart += COPIES * size
        try:
            yield
        finally:
            self._apart -= COPIES * size
