"""Redis' clock is the farm's: machines write their times into Redis by it, and read them by their own.

A host's clock may be hours off, and a host may lie. Its records keep its own times, with how far off it was, where
these can be (`orchestrator/ledger/attempts/times.py`). Nothing that it announces has yet to come.
"""

from __future__ import annotations

import time

from redis import Redis

from orchestrator.model.device import Device, Reading
from orchestrator.model.live.announcement import HostAnnouncement, Progress

AGREE_S, DAY_S = 0.5, 86_400.0
"""Clocks that differ by less are taken for the same, and those whose difference the question to Redis may explain."""
BELIEVED_S = 5.0


class FarmClock:
    """The time by which Redis' clock is ahead of this machine's."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._ahead_s, self._asked_at = 0.0, float("-inf")

    def ahead_s(self) -> float:
        """Seconds to add to a time of this machine's; asked again after a while. Raises RedisError."""
        if time.monotonic() - self._asked_at > BELIEVED_S:
            before = time.time()
            seconds, micros = self._redis.time()
            took_s = time.time() - before
            ahead_s = seconds + micros / 1e6 - before - took_s / 2
            self._ahead_s = ahead_s if abs(ahead_s) >= max(AGREE_S, took_s / 2) else 0.0
            self._asked_at = time.monotonic()
        return self._ahead_s


def device_at(device: Device, ahead_s: float) -> Device:
    """The same with its times by a clock that is so far ahead."""
    if not ahead_s:
        return device
    state = device.state
    changes = {
        "seen_at": _moved(state.seen_at, ahead_s),
        "ready_at": _moved(state.ready_at, ahead_s),
        "reading": _reading_at(state.reading, ahead_s),
    }
    return device.model_copy(update={"state": state.model_copy(update=changes)})


def device_by(device: Device, now: float) -> Device:
    """The same as a reader believes it whose clock says `now`: no time of what was has yet to come, and none is before
    1970; a device is ready within a day."""
    state, reading = device.state, device.state.reading
    seen_at, ready_at = _within(state.seen_at, now), state.ready_at and _within(state.ready_at, now + DAY_S)
    at = reading and _within(reading.at, now)
    if (seen_at, ready_at, at) == (state.seen_at, state.ready_at, reading and reading.at):
        return device
    changes = {"seen_at": seen_at, "ready_at": ready_at, "reading": reading and reading.model_copy(update={"at": at})}
    return device.model_copy(update={"state": state.model_copy(update=changes)})


def progress_by(progress: Progress, now: float) -> Progress:
    reading = progress.reading and progress.reading.model_copy(update={"at": _within(progress.reading.at, now)})
    return progress.model_copy(update={"since": _within(progress.since, now), "reading": reading})


def host_by(host: HostAnnouncement, now: float) -> HostAnnouncement:
    return host.model_copy(update={"seen_at": _within(host.seen_at, now)})


def _within(at: float, most: float) -> float:
    return at if 0.0 <= at <= most else most if at > most else 0.0


def progress_at(progress: Progress, ahead_s: float) -> Progress:
    changes = {"since": progress.since + ahead_s, "reading": _reading_at(progress.reading, ahead_s)}
    return progress.model_copy(update=changes) if ahead_s else progress


def host_at(host: HostAnnouncement, ahead_s: float) -> HostAnnouncement:
    return host.model_copy(update={"seen_at": _moved(host.seen_at, ahead_s)}) if ahead_s else host


def _reading_at(reading: Reading | None, ahead_s: float) -> Reading | None:
    return reading.model_copy(update={"at": reading.at + ahead_s}) if reading else None


def _moved(at: float | None, ahead_s: float) -> float | None:
    """0 and None say that there is no such time."""
    return at + ahead_s if at else at
