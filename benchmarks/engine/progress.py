"""A bar with the time that is left, on stderr; one line a step where stderr is no terminal."""

from __future__ import annotations

import sys
import time

_WIDTH = 24
_QUIET_S = 5.0
"""The time between lines where stderr is no terminal."""


class Progress:
    """The progress over several networks with as many steps each."""

    def __init__(self, networks: int) -> None:
        self._networks, self._began, self._at = networks, time.monotonic(), 0
        self._title, self._shown = "", -_QUIET_S

    def network(self, index: int, name: str) -> None:
        """The next network begins."""
        self._at, self._title = index, name

    def __call__(self, what: str, done: int, total: int) -> None:
        """Report as `rounds.Report` asks."""
        share = (self._at + done / max(total, 1)) / self._networks
        now = time.monotonic()
        left_s = (now - self._began) / share * (1 - share) if share > 0.02 else None
        text = f"{share:4.0%} {self._title}: {what}" + (f", {left_s:.0f} s left" if left_s is not None else "")
        if sys.stderr.isatty():
            full = round(share * _WIDTH)
            sys.stderr.write(f"\r\x1b[K[{'#' * full}{'.' * (_WIDTH - full)}] {text}")
        elif now - self._shown >= _QUIET_S:
            self._shown = now
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the line."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
