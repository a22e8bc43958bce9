"""The worker of a host, which notes when it asked a phone something: `python -m benchmarks.farm.timed_worker FILE`.

A line of JSON for each command, push and pull through adb, and for each claim, by CLOCK_BOOTTIME. The work is that of
`workers.host`; a note costs some microseconds.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from benchmarks.command_line import run_command
from orchestrator.coordination.leases import Leases
from workers import host
from workers.connection.adb import AdbConnection


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _noted(act: Callable[..., Any], kind: str, say: Callable[..., None]) -> Callable[..., Any]:
    """The method, which says afterwards of which device it was, what it was, and how long it took."""

    def call(self: Any, *words: Any, **options: Any) -> Any:
        began = now_ns()
        try:
            return act(self, *words, **options)
        finally:
            said = str(words[0])[:80]
            say(serial=getattr(self, "serial", ""), kind=kind, what=said, thread=threading.get_ident(), at=began,
                ns=now_ns() - began)  # fmt: skip

    return call


def note_in(file: TextIO) -> None:
    """Note from now on when the worker asks a phone something."""
    lock = threading.Lock()

    def say(**note: object) -> None:
        with lock:
            file.write(json.dumps(note) + "\n")

    for kind in ("shell", "shells", "push", "pull"):
        setattr(AdbConnection, kind, _noted(getattr(AdbConnection, kind), kind, say))
    Leases.claim = _noted(Leases.claim, "claim", say)  # type: ignore[method-assign]


def main() -> int:
    with Path(sys.argv[1]).open("a", buffering=1) as notes:
        note_in(notes)
        return host.main()


if __name__ == "__main__":
    run_command(main)
