"""Event lines, as the agent writes them."""

from __future__ import annotations

import fcntl
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class End(Exception):
    """The run ends with an `error` event."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Journal:
    """Event lines to a file and, unless detached, to standard output."""

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("w") if path else None  # noqa: SIM115 (it lives as long as the program)
        if self._file:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # who follows the run waits for its end by this
        self._lock = threading.Lock()
        self._seq = 0

    def write(self, event: str, **fields: Any) -> None:
        with self._lock:
            head = {"event": event, "seq": self._seq, "t_ns": fields.pop("t_ns", None) or now_ns()}
            line = json.dumps({**head, **fields}, separators=(",", ":")) + "\n"
            self._seq += 1
            for file in (self._file, sys.stdout):
                if file is not None:
                    file.write(line)
                    file.flush()
