"""`/proc/stat` of a phone: the time of its own processes, and of a background load that exists only here.

It counts the host's cores, because the processes' own times, which an agent compares with it, are the host's.
"""

from __future__ import annotations

import os
import time

_JIFFIES_PER_S = 100
HOST_CORES = len(os.sched_getaffinity(0))


class ProcessorTime:
    """Counts since booting. Each figure only ever rises."""

    def __init__(self) -> None:
        self._booted = int(time.time())
        self._busy_s = 0.0
        self._idle_s = 0.0

    def add(self, dt_s: float, busy_s: float) -> None:
        """Let `dt_s` pass, in which all cores together were busy for `busy_s`."""
        self._busy_s += busy_s
        self._idle_s += max(0.0, dt_s * HOST_CORES - busy_s)

    def text(self) -> str:
        """As Linux prints it; the cores share the load evenly."""
        busy, idle = (int(seconds * _JIFFIES_PER_S / HOST_CORES) for seconds in (self._busy_s, self._idle_s))
        whole = _row(int(self._busy_s * _JIFFIES_PER_S), int(self._idle_s * _JIFFIES_PER_S))
        cores = [f"cpu{core} {_row(busy, idle)}" for core in range(HOST_CORES)]
        tail = ["intr 0", "ctxt 0", f"btime {self._booted}", "processes 1", "procs_running 1", "procs_blocked 0"]
        return "\n".join([f"cpu  {whole}", *cores, *tail, "softirq 0 0 0 0 0 0 0 0 0 0 0"])


def _row(busy: int, idle: int) -> str:
    """Columns user nice system idle iowait irq softirq steal guest guest_nice."""
    return f"{busy} 0 0 {idle} 0 0 0 0 0 0"
