"""Find doubts about the energy of a block that counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from orchestrator.model import telemetry
from orchestrator.model.device import Source
from orchestrator.model.power import SHORTEST_LOAD_S, PowerSource, Scope
from orchestrator.model.quantity import counted
from orchestrator.model.record import Doubt, DoubtCode, Record

from .charge import TOLERANCE, ChargeCheck
from .sources import Origin, calibration, charging_readings
from .step import Step, unit_step
from .windows import Window, block_window

FEWEST_REFRESHES = 100
"""Measurement protocol, step 7: load for so many refresh periods, and for `SHORTEST_LOAD_S`."""
STUCK_READINGS, STUCK_SHARE, STUCK_TIMES, FEWEST_RUNS = 10, 0.1, 20, 5
"""Equal readings of a meter that hangs, of how many, how often as many as elsewhere; changes that it takes to tell."""
ALIASED_SHARE = 0.01
"""The share of the load's energy that readings in step with inferences may be off."""


class Seen(NamedTuple):
    """The facts that became known of a source with the energy."""

    load_w: float
    aliased: float
    """Share of the energy, see `aliasing.py`."""
    late_s: float
    """The time by which a meter was late."""
    rest_w: float | None
    """Idle power under the load, by the rests."""
    step: Step | None


def find_energy_doubts(
    record: Record, origin: Origin, load: Window, checked: ChargeCheck | None, seen: Seen
) -> tuple[Doubt, ...]:
    """All doubts about figures of one source, in a fixed order."""
    of_gauge = _of_gauge(record, checked) if origin.source is PowerSource.GAUGE else ()
    return (*of_gauge, *_of_load(origin, load), *_of_source(record, origin, seen, load), *_of_model(record, origin))


def _of_gauge(record: Record, checked: ChargeCheck | None) -> Iterator[Doubt]:
    gauge = calibration(record)
    if record.gauge is None or gauge.method == "assumed":
        detail = f"{gauge.ampere_per_unit:g} A per unit, sign {gauge.discharging_sign}"
        yield Doubt(code=DoubtCode.GAUGE_ASSUMED, detail=detail)
    if not gauge.absolute:
        yield Doubt(code=DoubtCode.RELATIVE_ENERGY, detail=f"gain known to {gauge.gain_uncertainty:.0%}")
    if charging := charging_readings(record.power):
        yield Doubt(
            code=DoubtCode.CHARGING,
            detail=f"{charging} of {counted(len(record.power), 'reading was', 'readings were')} not discharging",
        )
    if checked and not checked.agrees:
        detail = f"{checked.difference:+.1%} over {counted(checked.counts, 'count')}, at most {TOLERANCE:.0%}"
        yield Doubt(code=DoubtCode.CHARGE_MISMATCH, detail=detail)


def _of_load(origin: Origin, load: Window) -> Iterator[Doubt]:
    wanted_s = max(SHORTEST_LOAD_S, FEWEST_REFRESHES * origin.trace.refresh_s)
    if load.length_s < wanted_s:
        yield Doubt(code=DoubtCode.SHORT_LOAD, detail=f"{load.length_s:.1f} s, wanted are {wanted_s:g} s")


def _stood_still(origin: Origin, load: Window) -> int:
    """Return how many readings under the load stood still while the others change; `frozen.py` judges a gauge's."""
    t_s, power_w = origin.trace.t_s, origin.trace.power_w
    inside = power_w[(t_s >= load.start_s) & (t_s <= load.end_s)]
    runs = np.diff([*np.flatnonzero(np.diff(inside, prepend=np.nan)), len(inside)])
    if origin.source is PowerSource.GAUGE or len(runs) < FEWEST_RUNS:
        return 0
    longest = int(runs.max())
    others = (len(inside) - longest) / (len(runs) - 1)
    return longest if longest >= max(STUCK_READINGS, STUCK_SHARE * len(inside), STUCK_TIMES * others) else 0


def _of_source(record: Record, origin: Origin, seen: Seen, load: Window) -> Iterator[Doubt]:
    power_w, (low_w, high_w) = origin.trace.power_w, telemetry.PHONE_W
    if origin.left_out.count:
        yield Doubt(code=DoubtCode.READINGS_LEFT_OUT, detail=f"{origin.name}: {origin.left_out.text}")
    if origin.assumed_v:
        detail = f"{origin.name}: {telemetry.USUAL_V:g} V, as {origin.assumed_v}"
        yield Doubt(code=DoubtCode.VOLTAGE_ASSUMED, detail=detail)
    if len(power_w) >= STUCK_READINGS and not np.ptp(power_w):
        detail = (
            f"{origin.name}: {power_w[0]:g} W in all {counted(len(power_w), 'reading')}, at rest and under the load"
        )
        yield Doubt(code=DoubtCode.STUCK_METER, detail=detail)
    elif still := _stood_still(origin, load):
        detail = f"{origin.name}: {counted(still, 'reading')} under the load stood still, the others change"
        yield Doubt(code=DoubtCode.STUCK_METER, detail=detail)
    elif record.device.kind == "phone" and origin.scope is Scope.DEVICE:
        phases = (("under the load", seen.load_w), ("at rest", seen.rest_w))
        odd = [f"{w:.3g} W {name}" for name, w in phases if w is not None and not low_w <= w <= high_w]
        if odd:
            detail = f"{origin.name}: {', '.join(odd)}; a phone draws {low_w:g} to {high_w:g} W"
            yield Doubt(code=DoubtCode.IMPLAUSIBLE_POWER, detail=detail)
    if origin.source is not PowerSource.GAUGE and (by := unit_step(power_w)) is not None:
        detail = f"{origin.name}: its readings come to {by[1]:.3g} times those before, as of another unit"
        yield Doubt(code=DoubtCode.IMPLAUSIBLE_POWER, detail=detail)
    if seen.step is not None:
        window, (start_s, end_s, by_w) = block_window(record), seen.step
        began_s = window.start_s if window else 0.0
        detail = f"{origin.name}: {by_w:+.3g} W from {start_s - began_s:.1f} to {end_s - began_s:.1f} s of the block"
        yield Doubt(code=DoubtCode.POWER_STEP, detail=detail)
    if seen.aliased > ALIASED_SHARE:
        detail = f"its energy may be off by {seen.aliased:.0%}: readings come at the same part of each inference"
        yield Doubt(code=DoubtCode.ALIASED_POWER, detail=detail)
    if seen.late_s:
        detail = f"{origin.name}: by the load's edges {seen.late_s * 1e3:+.0f} ms late, which was taken out"
        yield Doubt(code=DoubtCode.METER_CLOCK, detail=detail)


def _of_model(record: Record, origin: Origin) -> Iterator[Doubt]:
    if origin.source is PowerSource.MODEL or record.source is Source.VIRTUAL:
        yield Doubt(code=DoubtCode.MODELLED_POWER)
