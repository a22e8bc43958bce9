"""The low-memory killer: ends a phone's largest program where too little memory is left, and logs it as lmkd does."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from virtual_phones.phone import Phone
from virtual_phones.system.processes import unshared_bytes

TAG = "lowmemorykiller"
_LMKD_PID = 389


def look(phone: Phone, pids: Sequence[int]) -> float:
    """Look at what runs inside now; return the bytes that it may take: no end of them without `low_memory`."""
    limits = phone.profile.low_memory
    if limits is None:
        return float("inf")
    used = {pid: unshared_bytes(pid) for pid in pids}
    left = phone.profile.memory_bytes - limits.system_bytes - sum(used.values()) - limits.kill_free_bytes
    if left >= 0 or not used:
        return left
    largest = max(used, key=lambda pid: used[pid])
    name = _name(largest)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(largest, signal.SIGKILL)
        phone.log.add(
            "I", TAG, _LMKD_PID,
            f"Kill '{name}' ({largest}), uid 2000, oom_score_adj 0 to free {used[largest] // 1024}kB rss, 0kB swap; "
            "reason: min watermark is breached and swap is low (0kB < 0kB)",
        )  # fmt: skip
    return 0.0


def _name(pid: int) -> str:
    """Return the name of a process's program; of its thread where it has no arguments (any more)."""
    with suppress(OSError):
        program = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]).rpartition("/")[2]
        return program or Path(f"/proc/{pid}/comm").read_text().strip()
    return str(pid)
