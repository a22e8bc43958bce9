"""A known power over time, and what writes it into files as a kernel or a meter's program would."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

MEAN_W, SWING_W, PERIOD_S = 2.0, 1.0, 0.5


def power_w(host_s: float) -> float:
    """Power at a CLOCK_MONOTONIC time of this host."""
    return MEAN_W + SWING_W * math.sin(2 * math.pi * host_s / PERIOD_S)


def energy_j(host_s: float) -> float:
    """Its integral."""
    return MEAN_W * host_s - SWING_W * PERIOD_S / (2 * math.pi) * math.cos(2 * math.pi * host_s / PERIOD_S)


def overwrite(path: Path, text: str) -> None:
    """Replace a node's text without a moment in which it is empty."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text + "\n")
    fresh.replace(path)


@contextmanager
def repeated(act: Callable[[], None], period_s: float = 0.003) -> Iterator[threading.Event]:
    """`act` again and again on a thread; set the event to pause it."""
    end, pause = threading.Event(), threading.Event()

    def run() -> None:
        while not end.wait(period_s):
            if not pause.is_set():
                act()

    act()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield pause
    finally:
        end.set()
        thread.join(5.0)


class CsvWriter:
    """A meter's program: lines of its own clock and power, flushed a few at a time."""

    def __init__(self, path: Path, head: str, line: Callable[[float], str]) -> None:
        self._path, self._line = path, line
        self._next_s = time.monotonic()
        path.write_text(head)

    def __call__(self) -> None:
        now_s = time.monotonic()
        lines = []
        while self._next_s < now_s:
            lines.append(self._line(self._next_s))
            self._next_s += 0.005
        with self._path.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
