"""Detect that the battery was charged, or the phone supplied from outside, during a block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.model.event import Power
from orchestrator.model.experiment import Conditions
from orchestrator.model.record import InvalidCode, Invalidity, Record

from .gauge_readings import gauge_readings
from .sources import DISCHARGING
from .windows import since_start_s

CHARGING_NOISES = 5.0
"""A current into the battery counts as charging from so many standard deviations of a reading ..."""
CHARGING_A = 0.02
"""... and from this."""
CHARGING_READINGS = 3
"""... in so many readings."""


def find_charging(record: Record, readings: Sequence[Power], wanted: Conditions) -> Iterator[Invalidity]:
    """Seen by the status or by a current into the battery. A phone that charges throughout, where any supply is
    allowed, is as it was asked for: its energy has a doubt."""
    with_status = [p for p in readings if p.status]
    by_status = [p for p in with_status if p.status != DISCHARGING]
    by_sign = _into_battery(record, readings)
    throughout = bool(with_status) and len(by_status) == len(with_status)
    if not (by_status or by_sign) or (wanted.supply == "any" and throughout):
        return
    first = (by_status or by_sign)[0]
    evidence = f"status {first.status!r}" if by_status else "the current goes into the battery"
    detail = (
        f"{evidence} at {since_start_s(record, first):.1f} s of the block, {max(len(by_status), len(by_sign))} readings"
    )
    yield Invalidity(code=InvalidCode.CHARGING, detail=detail)


def _into_battery(record: Record, readings: Sequence[Power]) -> list[Power]:
    gauge = record.gauge
    if gauge is None:
        return []
    bound_a = max(CHARGING_A, CHARGING_NOISES * gauge.noise_a)
    scale_a = gauge.discharge_a_per_unit
    told = gauge_readings(readings, gauge)
    found = [readings[place] for place in told.place[told.raw * scale_a < -bound_a]]
    return found if len(found) >= CHARGING_READINGS else []
