"""Processor time of a phone: what its processes used and wanted, and `/proc/stat`.

Power and heat follow the time for which the processes *wanted* a core: a phone has cores of its own, so that a thread
that waits here because others keep this host busy would run there. `/proc/stat` has the time that they *used*, and a
background load that exists only here; it counts the host's cores, because the processes' own times, which an agent
compares with it, are the host's.
"""

from __future__ import annotations

import os
import time

_JIFFIES_PER_S = 100
HOST_CORES = len(os.sched_getaffinity(0))


class SteadyCount:
    """Seconds by which the counts of processes rose in each tick.

    The host counts in coarse steps, and a wait only when it is over: what does not fit into the time that has passed
    belongs to the next ticks, up to `most_owed_s`, while there is a process.
    """

    def __init__(self, most_owed_s: float) -> None:
        self._most_owed_s = most_owed_s
        self._counts_s: dict[int, float] = {}
        self._owed_s = 0.0

    def enter(self, counts_s: dict[int, float], room_s: float) -> float:
        """`counts_s`: so far, by pid; a new process counts from its next tick on. At most `room_s` is given out."""
        before, self._counts_s = self._counts_s, counts_s
        rises_s = (max(0.0, count_s - before.get(pid, count_s)) for pid, count_s in counts_s.items())
        self._owed_s = self._owed_s + sum(rises_s) if counts_s else 0.0
        entered_s = min(self._owed_s, room_s)
        self._owed_s = min(self._owed_s - entered_s, self._most_owed_s)
        return entered_s


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
        """Return the text as Linux prints it; the cores share the load evenly."""
        busy, idle = (int(seconds * _JIFFIES_PER_S / HOST_CORES) for seconds in (self._busy_s, self._idle_s))
        whole = _row(int(self._busy_s * _JIFFIES_PER_S), int(self._idle_s * _JIFFIES_PER_S))
        cores = [f"cpu{core} {_row(busy, idle)}" for core in range(HOST_CORES)]
        tail = ["intr 0", "ctxt 0", f"btime {self._booted}", "processes 1", "procs_running 1", "procs_blocked 0"]
        return "\n".join([f"cpu  {whole}", *cores, *tail, "softirq 0 0 0 0 0 0 0 0 0 0 0"])


def _row(busy: int, idle: int) -> str:
    """Columns user nice system idle iowait irq softirq steal guest guest_nice."""
    return f"{busy} 0 0 {idle} 0 0 0 0 0 0"
