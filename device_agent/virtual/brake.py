"""Slows processes down: stops them for a part of every cycle of 2 ms.

A program of its own, so that its clock does not wait for the phones: `python brake.py`, with lines `SHARE PID PID ...`
on standard input, each replacing the one before. SHARE is the part of the time in which the processes run. At the end
of the input, or on SIGTERM, all processes go on. It needs no rights beyond those to signal the processes.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

CYCLE_S = 0.002
_MOST_DEBT_S = 0.05


class Brake:
    """Runs until the input ends. Time that a stop lasted too long is given back in the next cycles."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._buffer = b""
        self._share = 1.0
        self._pids: set[int] = set()
        self._ended = False

    def run(self) -> None:
        debt_s = 0.0
        try:
            while not self._ended:
                began = time.monotonic()
                if self._share >= 1.0 or not self._pids:
                    self._wait(None)
                    continue
                self._wait(CYCLE_S * self._share)
                ran_s = time.monotonic() - began
                stop_s = ran_s * (1.0 - self._share) / self._share - debt_s
                if stop_s <= 0:
                    debt_s = -stop_s
                    continue
                stopped = time.monotonic()
                _signal(self._pids, signal.SIGSTOP)
                self._wait(stop_s)
                _signal(self._pids, signal.SIGCONT)
                debt_s = min(_MOST_DEBT_S, max(0.0, time.monotonic() - stopped - stop_s))
        finally:
            _signal(self._pids, signal.SIGCONT)

    def _wait(self, seconds: float | None) -> None:
        """Sleep (None: until there is a line) and take what was said meanwhile."""
        until = None if seconds is None else time.monotonic() + seconds
        while not self._ended:
            left_s = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._source], [], [], left_s)[0]:
                return
            self._take()
            if until is None:
                return

    def _take(self) -> None:
        block = os.read(self._source, 1 << 16)
        self._ended = not block
        *lines, self._buffer = (self._buffer + block).split(b"\n")
        if lines:
            share, *pids = lines[-1].split()
            self._share = float(share)
            _signal(self._pids - set(map(int, pids)), signal.SIGCONT)
            self._pids = set(map(int, pids))


def _signal(pids: set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _end(_number: int, _frame: object) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Brake(sys.stdin.fileno()).run()
