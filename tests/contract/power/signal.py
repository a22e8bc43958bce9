"""A known power over time, and what writes it into files as a kernel or a meter's program would."""

from __future__ import annotations

import math
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.power.clock_mapping import ahead_s

MEAN_W, SWING_W, PERIOD_S = 2.0, 1.0, 0.5
MOST_W = MEAN_W + SWING_W
STEADY_S = 0.01
"""The most time between two turns of a thread that sleeps 2 ms, where other threads of its process compute."""


def power_w(host_s: float) -> float:
    """Power at a CLOCK_MONOTONIC time of this host."""
    return MEAN_W + SWING_W * math.sin(2 * math.pi * host_s / PERIOD_S)


def energy_j(host_s: float) -> float:
    """Its integral."""
    return MEAN_W * host_s - SWING_W * PERIOD_S / (2 * math.pi) * math.cos(2 * math.pi * host_s / PERIOD_S)


def boot_ahead_s() -> float:
    """Return by how much CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC."""
    return ahead_s(lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME))


def overwrite(path: Path, text: str) -> None:
    """Replace a node's text without a moment in which it is empty."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text + "\n")
    fresh.replace(path)


class Seen:
    """The value last written, at any time: a file is as late as its writer, and that is not the source's error."""

    def __init__(self) -> None:
        self._of_s: list[float] = []
        self._done_s: list[float] = []

    def note(self, of_s: float) -> None:
        """The signal's value of this time was written just now."""
        self._of_s.append(of_s)
        self._done_s.append(time.monotonic())

    def seen_s(self, host_s: float) -> float:
        """The time of the signal that a reader found at this time."""
        return self._of_s[max(0, bisect_right(self._done_s, host_s) - 1)]


class Log(Seen):
    """A node of the kernel."""

    def __init__(self, text: Callable[[float], str]) -> None:
        super().__init__()
        self._text = text

    def write(self, path: Path) -> None:
        of_s = time.monotonic()
        overwrite(path, self._text(of_s))
        self.note(of_s)

    def unsure_s(self, host_s: float) -> float:
        """The time by which a reader may have found a later one: what was being written then may have been there."""
        return self._of_s[max(0, bisect_right(self._of_s, host_s) - 1)] - self.seen_s(host_s)


@contextmanager
def stalls() -> Iterator[Callable[[], float]]:
    """The time in s, of all times together, for which a thread of this process that wanted to run had to wait."""
    end, waited_s = threading.Event(), 0.0

    def run() -> None:
        nonlocal waited_s
        before_s = time.monotonic()
        while not end.wait(0.002):
            before_s, now_s = time.monotonic(), before_s
            waited_s += max(0.0, before_s - now_s - STEADY_S)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield lambda: waited_s
    finally:
        end.set()
        thread.join()


@contextmanager
def repeated(act: Callable[[], None], period_s: float = 0.003) -> Iterator[threading.Lock]:
    """`act` again and again on a thread; it pauses, and is at rest, while somebody holds the lock."""
    end, pause = threading.Event(), threading.Lock()

    def run() -> None:
        while not end.wait(period_s):
            if pause.acquire(timeout=period_s):
                act()
                pause.release()

    act()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield pause
    finally:
        end.set()
        thread.join()


class CsvWriter(Seen):
    """A meter's program: lines of its own clock and power, flushed a few at a time."""

    def __init__(self, path: Path, head: str, line: Callable[[float], str], spacing_s: float = 0.005) -> None:
        super().__init__()
        self._path, self._line, self._spacing_s = path, line, spacing_s
        self._next_s = time.monotonic()
        path.write_text(head)

    def __call__(self) -> None:
        now_s = time.monotonic()
        lines = []
        while self._next_s < now_s:
            lines.append(self._line(self._next_s))
            self._next_s += self._spacing_s
        with self._path.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            self.note(self._next_s - self._spacing_s)
            os.fsync(file.fileno())
