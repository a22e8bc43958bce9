"""The device and API on which a plan ran, as the agent says it."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.model.event import Device, Event
from orchestrator.model.record import RunsOn


def runs_on(events: Iterable[Event]) -> RunsOn | None:
    """Return what the agent said that it ran on."""
    device = next((event for event in events if isinstance(event, Device)), None)
    if device is None:
        return None
    return RunsOn(api=device.facts.api, precision=device.precision, facts=device.facts, threads=device.threads)
