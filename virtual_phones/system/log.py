"""The phone's log: the newest lines, as `logcat -v threadtime` prints them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from typing import NamedTuple

_MOST = 1000


class _Line(NamedTuple):
    level: str
    tag: str
    text: str


class Log:
    """The log in memory, as Android's: a reboot empties it."""

    def __init__(self) -> None:
        self._lines: deque[_Line] = deque(maxlen=_MOST)

    def add(self, level: str, tag: str, pid: int, message: str) -> None:
        """One line of a program, now."""
        now_ns = time.time_ns()
        at = time.strftime("%m-%d %H:%M:%S", time.gmtime(now_ns / 1e9)) + f".{now_ns // 1_000_000 % 1000:03d}"
        self._lines.append(_Line(level, tag, f"{at} {pid:>5} {pid:>5} {level} {tag}: {message}"))

    def lines(self, newest: int = _MOST, tags: Collection[str] = ()) -> list[str]:
        """The newest so many lines, in order; where tags are named, of these only."""
        shown = [line.text for line in self._lines if not tags or line.tag in tags]
        return shown[max(0, len(shown) - newest) :]

    def clear(self) -> None:
        self._lines.clear()
