"""Sources of power figures behind one interface; see docs/howto/power-sources.md."""

from __future__ import annotations

from typing import Literal

from orchestrator.model.power import PowerSource
from orchestrator.model.wiring import WiredDevice
from orchestrator.system.config import Settings
from workers.devices.fleet import Member

from .base import Bench, MeterLost, PowerMeter, ReadingLost
from .model import control_socket
from .registry import choose_source, find_sources

__all__ = [
    "Bench",
    "MeterLost",
    "PowerMeter",
    "ReadingLost",
    "bench_of",
    "choose_source",
    "find_sources",
    "sources_for",
]


def bench_of(member: Member, settings: Settings, wired: WiredDevice) -> Bench:
    """Return what the sources of a device are made from."""
    return Bench(member, dict(wired.meter), control_socket(settings.state))


def sources_for(
    member: Member, settings: Settings, wired: WiredDevice, wanted: PowerSource | Literal["auto"]
) -> PowerMeter:
    """The source of one block; the gauge's does nothing on the host. `wired`: what is wired to the device.

    Raises Unsupported where the device lacks what is wanted.
    """
    return choose_source(bench_of(member, settings, wired), wanted)
