"""Map this host's monotonic clock to a device's CLOCK_BOOTTIME, for the times of external meters.

A round trip asks the device for its time: the answer was true at some moment between question and answer. The shortest
of the round trips before the block and the shortest of those after it give two points; between them the map is a line.
Whether its residual is small enough for the block is decided with the record (`InvalidCode.CLOCK_MAP`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from orchestrator.model.errors import DeviceSick, FarmError, TransportLost
from orchestrator.model.power import ClockAnchor, ClockMap
from workers.connection.base import DeviceConnection

ROUND_TRIPS = 20
ANCHOR_ROUND_TRIPS = 3
UPTIME = "/proc/uptime"
UPTIME_STEP_NS = 10_000_000
"""/proc/uptime cuts its figures to hundredths of a second."""

Ask = Callable[[], tuple[int, int]]
"""The device's CLOCK_BOOTTIME in ns and how coarse it is: the true time lies in [value, value + coarseness]."""


class RoundTrip(NamedTuple):
    """One question and its answer."""

    sent_ns: int
    """CLOCK_MONOTONIC of the host."""
    device_ns: int
    got_ns: int
    step_ns: int = 0
    """Coarseness of `device_ns`."""

    @property
    def half_ns(self) -> int:
        """Half the width within which the offset lies."""
        return (self.got_ns - self.sent_ns + self.step_ns + 1) // 2

    @property
    def middle_ns(self) -> int:
        """The host's time that is put beside the device's answer."""
        return (self.sent_ns + self.got_ns) // 2

    @property
    def offset_ns(self) -> int:
        return self.device_ns + self.step_ns // 2 - self.middle_ns


def ask_round_trips(ask: Ask, count: int = ROUND_TRIPS) -> tuple[RoundTrip, ...]:
    """Ask so many times, one after the other. Raises what `ask` raises."""
    trips = []
    for _ in range(count):
        sent_ns = time.monotonic_ns()
        device_ns, step_ns = ask()
        trips.append(RoundTrip(sent_ns, device_ns, time.monotonic_ns(), step_ns))
    return tuple(trips)


def fit(before: Iterable[RoundTrip], after: Iterable[RoundTrip]) -> ClockMap:
    """The line through the shortest round trip of each group; level where there is only one group."""
    groups = [group for group in (tuple(before), tuple(after)) if group]
    if not groups:
        raise ValueError("no round trips")
    first, last = (min(group, key=lambda trip: trip.half_ns) for group in (groups[0], groups[-1]))
    apart_ns = last.middle_ns - first.middle_ns
    return ClockMap(
        offset_ns=first.offset_ns,
        drift=(last.offset_ns - first.offset_ns) / apart_ns if apart_ns > 0 else 0.0,
        reference_ns=first.middle_ns,
        residual_ns=max(first.half_ns, last.half_ns),
        round_trips=sum(map(len, groups)),
    )


def ahead_s(clock_ns: Callable[[], int]) -> float:
    """Return by how much another clock of this host is ahead of CLOCK_MONOTONIC.

    A busy machine stops a thread between two readings, for 50 ms and more: the shortest of a few round trips tells.
    """
    trips = ask_round_trips(lambda: (clock_ns(), 0), ANCHOR_ROUND_TRIPS)
    return min(trips, key=lambda trip: trip.half_ns).offset_ns * 1e-9


def host_clock() -> ClockMap:
    """The map of a device that is this host itself, or runs on it: CLOCK_MONOTONIC to CLOCK_BOOTTIME."""
    return fit(ask_round_trips(lambda: (time.clock_gettime_ns(time.CLOCK_BOOTTIME), 0)), ())


def anchor(connection: DeviceConnection, agent: str) -> ClockAnchor | None:
    """The device's time beside this host's Unix time; None where the device does not tell it now."""
    try:
        trips = ask_round_trips(clock_of(connection, agent), ANCHOR_ROUND_TRIPS)
    except (DeviceSick, TransportLost):  # whatever is asked next says so
        return None
    best = min(trips, key=lambda trip: trip.half_ns)
    device_ns = best.device_ns + best.step_ns // 2
    unix_s = best.middle_ns * 1e-9 + ahead_s(time.time_ns)
    return ClockAnchor(unix_s=unix_s, device_ns=device_ns, residual_ns=best.half_ns)


def clock_of(connection: DeviceConnection, agent: str) -> Ask:
    """Return how to ask a device: by its agent, which tells the clock of its own events; else by /proc/uptime.

    Raises DeviceSick where it tells neither.
    """
    if _agent_ns(connection, agent) is None:
        return lambda: (_uptime_ns(connection), UPTIME_STEP_NS)
    return lambda: (_agent_ns(connection, agent) or 0, 0)


def _agent_ns(connection: DeviceConnection, agent: str) -> int | None:
    result = connection.shell([agent, "version"])
    try:
        boottime_ns = json.loads(result.stdout).get("boottime_ns") if result.code == 0 else None
    except (ValueError, AttributeError):
        return None
    return boottime_ns if isinstance(boottime_ns, int) else None


def _uptime_ns(connection: DeviceConnection) -> int:
    result = connection.shell(["cat", UPTIME])
    try:
        return round(float(result.stdout.split()[0]) * 1e9)
    except (ValueError, IndexError) as e:
        raise _no_clock(connection) from e


def _no_clock(connection: DeviceConnection) -> FarmError:
    return DeviceSick(f"{UPTIME} cannot be read", device=connection.serial, remedy="use the phone's own gauge instead")
