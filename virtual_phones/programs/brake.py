"""Slows processes down: stops them for a part of every cycle of 2 ms.

A program of its own, so that its clock does not wait for the phones: `python brake.py`, with lines `SHARE PID PID ...`
on standard input, each replacing the one before. SHARE is the part of the time in which the processes run; at 0 they
stand still. At the end of the input, or on SIGTERM, all processes go on. It needs no rights beyond those to signal the
processes.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

CYCLE_S = 0.002
MOST_DEBT_S = 0.05


class Pace:
    """The pace of stops after runs, so that in the long term a process runs for `share` of the time.

    On a busy machine this program wakes up late. Run time beyond the cycle lengthens the next stop; stop time beyond
    what was asked shortens the next stops, up to `MOST_DEBT_S`.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._debt_s = 0.0

    def stop_s(self, ran_s: float) -> float:
        """Seconds to stop after a run of `ran_s`; 0 where an earlier stop was too long by more than that."""
        wanted_s = ran_s * (1.0 - self.share) / self.share - self._debt_s
        self._debt_s = max(0.0, -wanted_s)
        return max(0.0, wanted_s)

    def was_stopped(self, asked_s: float, took_s: float) -> None:
        """A stop of `asked_s` took `took_s`."""
        self._debt_s = min(MOST_DEBT_S, max(0.0, took_s - asked_s))


class Brake:
    """Runs until the input ends."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._buffer = b""
        self._pace = Pace(1.0)
        self._pids: set[int] = set()
        self._ended = False

    def run(self) -> None:
        try:
            while not self._ended:
                pace = self._pace
                if pace.share >= 1.0 or not self._pids:
                    self._wait(None)
                    continue
                if pace.share <= 0.0:
                    _signal(self._pids, signal.SIGSTOP)
                    self._wait(None)
                    _signal(self._pids, signal.SIGCONT)
                    continue
                began = time.monotonic()
                self._wait(CYCLE_S * pace.share)
                stop_s = pace.stop_s(time.monotonic() - began)
                if stop_s > 0:
                    stopped = time.monotonic()
                    _signal(self._pids, signal.SIGSTOP)
                    self._wait(stop_s)
                    _signal(self._pids, signal.SIGCONT)
                    pace.was_stopped(stop_s, time.monotonic() - stopped)
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
            self._pace = Pace(float(share))
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
