"""Facts of a run that its events tell."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.model.event import Device, Event, Result
from orchestrator.model.record import RunsOn


def runs_on(events: Iterable[Event]) -> RunsOn | None:
    """Return the device and API on which a program ran, as the agent said it."""
    device = next((event for event in events if isinstance(event, Device)), None)
    if device is None:
        return None
    return RunsOn(api=device.facts.api, precision=device.precision, facts=device.facts, threads=device.threads)


def suspended_s(events: Iterable[Event]) -> float | None:
    """Return the time of a run in which the device was suspended; None where nobody came to tell."""
    told = next((event.suspended_ns for event in events if isinstance(event, Result)), None)
    return None if told is None else told / 1e9
