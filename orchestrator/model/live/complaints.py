"""Find what is wrong with a device that works all the same, by what its host reads of it every ten seconds."""

from __future__ import annotations

from typing import NamedTuple

from orchestrator.model.device import DeviceState

BAD_BATTERY = {
    *("Dead", "Overheat", "Over voltage", "Over current", "Unspecified failure"),
    *("Watchdog timer expire", "Safety timer expire"),
}
"""Words of the kernel (Documentation/ABI/testing/sysfs-class-power) for a battery that is to be looked at."""
LEAST_STORAGE = 1 << 30
MOST_LOSSES = 5


class Complaint(NamedTuple):
    """One of them."""

    check: str
    """`battery`, `storage`, `clock` or `adb`."""
    text: str
    """The finding, and what to do."""


def complaints(state: DeviceState) -> list[Complaint]:
    """Return the complaints about a device; what it does not tell is none."""
    health, free = state.reading.battery_health if state.reading else "", state.free_storage_bytes
    found = []
    if health in BAD_BATTERY:
        found.append(Complaint("battery", f"the kernel calls its battery `{health}`: look at it, it may swell"))
    if free is not None and free < LEAST_STORAGE:
        found.append(Complaint("storage", f"{free >> 20} MiB of storage are free: remove files or apps"))
    if state.clock_off_s is not None:
        word = "ahead" if state.clock_off_s > 0 else "behind"
        found.append(
            Complaint("clock", f"its clock is {abs(state.clock_off_s):.0f} s {word}: set it, or allow network time")
        )
    if state.adb_losses >= MOST_LOSSES:
        found.append(Complaint("adb", f"adb lost it {state.adb_losses} times in an hour: change cable, port or hub"))
    return found
