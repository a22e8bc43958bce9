"""Sources of power figures behind one interface; see docs/howto/power-sources.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from orchestrator.config import Settings
from orchestrator.model.power import PowerSource
from workers.fleet import Member

from .base import Bench, MeterLost, PowerMeter
from .model import control_socket
from .registry import choose_source, find_sources

__all__ = ["Bench", "MeterLost", "PowerMeter", "bench_of", "choose_source", "find_sources", "sources_for"]


def bench_of(member: Member, settings: Settings, meter: Mapping[str, Any] | None = None) -> Bench:
    """What the sources of a device are made from; `meter`: as the lab file has it for the device."""
    return Bench(member, dict(meter or {}), control_socket(settings.state))


def sources_for(
    member: Member, settings: Settings, meter: Mapping[str, Any] | None, wanted: PowerSource | Literal["auto"]
) -> PowerMeter:
    """The source of one block; the gauge's does nothing on the host. Raises Unsupported."""
    return choose_source(bench_of(member, settings, meter), wanted)
