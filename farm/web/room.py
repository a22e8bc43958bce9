"""Room on the farm's disk for the files that hosts send: set apart before they come, counted as they do."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.system.private_files import make_file, settle

FREE_BYTES = 1 << 30
"""The free space of the disk that a host's files leave to the farm."""
DAY_S = 86_400.0
HOST_BYTES = 32 << 30
"""The bytes that one host may send in a day."""
SENT = "sent.json"
"""The file in the state folder that holds the day's start, and bytes by host."""
COPIES = 2
"""A file is there twice until its hash is known to be right."""


class NoRoom(Exception):
    """The reason why a file is not taken."""


class Room:
    """The room on one disk, for one process; asked on its event loop alone. What hosts sent today is in a file, and
    counts after a restart too."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._apart, self._file = folder, 0, folder / SENT
        self._day, self._sent = 0.0, Counter[str]()
        with suppress(OSError, ValueError, TypeError, AttributeError):  # none yet, or damaged: it begins anew
            day, sent = json.loads(self._file.read_text())
            self._day, self._sent = float(day), Counter({str(host): int(size) for host, size in sent.items()})

    @contextmanager
    def set_apart(self, host: str, size: int) -> Iterator[None]:
        """Room for a file of this size. Raises NoRoom."""
        if not 0 <= time.time() - self._day < DAY_S:
            self._sent.clear()
            self._day = time.time()
        if shutil.disk_usage(self._folder).free - self._apart - COPIES * size < FREE_BYTES:
            raise NoRoom(f"the farm's disk has no room for {size} bytes")
        if self._sent[host] + size > HOST_BYTES:
            raise NoRoom(f"host {host} has sent {self._sent[host]} bytes within a day, and may send {HOST_BYTES}")
        self._sent[host] += size
        self._note()
        self._apart += COPIES * size
        try:
            yield
        finally:
            self._apart -= COPIES * size

    def _note(self) -> None:
        partial = self._file.with_suffix(".partial")
        make_file(partial)
        partial.write_text(json.dumps([self._day, self._sent]))
        settle(partial, self._file)
