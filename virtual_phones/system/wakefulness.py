"""The phone's wakefulness: its screen by time-out, settings and keys; and its kernel, which else may suspend.

A suspended phone runs nothing. What keeps its kernel up: the screen, power from a supply (as the drivers of most USB
controllers hold it), and adb's traffic, each command for as long as it runs and a moment longer.
"""

from __future__ import annotations

from dataclasses import dataclass

LINGER_S = 0.3
"""The time that the kernel stays up after the last of adb's traffic."""


@dataclass
class Wakefulness:
    """Times are CLOCK_MONOTONIC of the host, in s."""

    touched_s: float
    """The time when somebody last used it, or it started."""
    is_awake: bool = True
    streams: int = 0
    """Commands that run over adb."""
    stream_ended_s: float = float("-inf")
    suspended_since_s: float | None = None
    suspended_s: float = 0.0
    """The suspended time in all, up to the last time that it went on."""

    def wake(self, now_s: float) -> None:
        self.is_awake, self.touched_s = True, now_s

    def sleep(self) -> None:
        self.is_awake = False

    def press_power(self, now_s: float) -> None:
        """The power button: off, or on again."""
        self.sleep() if self.is_awake else self.wake(now_s)

    def stream_opened(self) -> None:
        self.streams += 1

    def stream_closed(self, now_s: float) -> None:
        self.streams -= 1
        self.stream_ended_s = now_s

    def advance(self, now_s: float, *, off_after_s: float, stays_on: bool, powered: bool) -> None:
        """Advance to now: `off_after_s` without a touch the screen goes off, unless it stays on."""
        if stays_on:
            self.touched_s = now_s
        self.is_awake = self.is_awake and now_s - self.touched_s < off_after_s
        up = self.is_awake or powered or self.streams > 0 or now_s - self.stream_ended_s < LINGER_S
        if up and self.suspended_since_s is not None:
            self.suspended_s += now_s - self.suspended_since_s
            self.suspended_since_s = None
        elif not up and self.suspended_since_s is None:
            self.suspended_since_s = now_s

    @property
    def is_suspended(self) -> bool:
        return self.suspended_since_s is not None
