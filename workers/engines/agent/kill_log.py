"""Ask a phone's log who ended a process."""

from __future__ import annotations

import re

from workers.connection.base import DeviceConnection

TAGS = ("lowmemorykiller", "lmkd", "libc", "DEBUG")
"""The low-memory killer's, by the age of the system, and those of a crash."""
FILTER = [*(f"{tag}:I" for tag in TAGS), "*:S"]
ASK = ["logcat", "-d", "-b", "main,system,crash", "-v", "threadtime", "-t", "2000", *FILTER]
LONGEST = 300
_CRASH = re.compile(r"Fatal signal|\bsignal \d+ \(SIG|>>> .+ <<<")


def who_killed(connection: DeviceConnection, pid: int) -> str:
    """The newest line that names the process; empty: the log says nothing of it. Raises TransportLost."""
    result = connection.shell(ASK)
    lines = result.stdout.decode(errors="replace").splitlines() if result.code == 0 else []
    naming = re.compile(rf"\({pid}\)|\bpid:? {pid}\b")
    found = [line for line in lines if naming.search(line)]
    return found[-1].strip()[:LONGEST] if found else ""


def is_crash(line: str) -> bool:
    """Return whether the process ended by a fault of its own, as the C library or the crash dumper tells it."""
    return _CRASH.search(line) is not None
