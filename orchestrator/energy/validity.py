"""Decide from its own record whether a block counts, with every reason against it. Pure.

The reasons and their thresholds are those of the measurement protocol (docs/architecture/session.md);
the record is kept with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from orchestrator.model import telemetry
from orchestrator.model.event import Power
from orchestrator.model.experiment import Conditions, Sampling
from orchestrator.model.power import PowerSource, Scope
from orchestrator.model.quantity import counted
from orchestrator.model.record import InvalidCode, Invalidity, Record

from .background import find_background
from .frozen import find_frozen
from .gauge_readings import NS, gauge_readings
from .idle import rest_change
from .sources import DISCHARGING, Origin, calibration, origins
from .throttling import find_clock_cap, find_latency_change
from .trace import GAP_PERIODS, Trace
from .uncertainty import COVERAGE
from .windows import Window, block_window, phase_window, readings_in, rest_windows, since_start_s

IDLE_SHARE, IDLE_W = 0.05, 0.05
"""The difference that the rests before and after may have, the larger of both, beyond its own uncertainty:
measurement protocol, step 7."""
LATE_PERIODS = 0.25
"""The lateness of a reading, in sampling periods, that does not make a gap of just three periods one too long."""
SUSPENDED_S = 0.001
"""Longer than two readings of two clocks can differ by; the shortest real suspend takes far longer."""
CLOCK_SHARE = 0.001
"""Residual of the map of clocks over the load's length: measurement protocol, step 12."""
MOST_LEFT_OUT = 0.1
"""Share of readings that cannot be, or of a rest's that are nothing."""
NOTHING = 0.005
"""Share of the load's power up to which a reading at rest shows none."""


def find_invalid(record: Record, wanted: Conditions, sampling: Sampling | None = None) -> tuple[Invalidity, ...]:
    """Return why the block does not count, in a fixed order; empty: it counts.

    A sustained load is there to see heat: in that mode slower inferences, lower clock caps and thermal status at the
    end are results (`latency_change` tells the first).
    """
    sustained = sampling is not None and sampling.mode == "sustained"
    trains = any(sample.stage for sample in record.samples)  # stages differ in what an epoch takes
    readings = readings_in(record.power, block_window(record))
    found = origins(record)
    return (
        *_suspended(record),
        *find_charging(record, readings, wanted),
        *_impossible(record, found),
        *_supplied_at_rest(record, found),
        *find_frozen(record),
        *_gap(record, readings),
        *(() if sustained else find_clock_cap(record, readings)),
        *(() if sustained or trains else find_latency_change(record)),
        *_states(record, wanted, sustained=sustained),
        *find_background(record, readings),
        *_idle_differs(record, found),
        *_clock_map(record),
    )


def has_slept(suspended_s: float | None) -> bool:
    """Return whether a run with the device suspended so long counts for nothing; None: the agent did not tell."""
    return suspended_s is not None and suspended_s > SUSPENDED_S


def _suspended(record: Record) -> Iterator[Invalidity]:
    """A suspended device computes nothing, and its clocks and caches are cold when it goes on: latencies do not count
    either, as nobody can tell which of them the sleep touched."""
    if has_slept(record.suspended_s):
        detail = f"the phone slept for {record.suspended_s:.3f} s of the run; see docs/howto/conditions.md"
        yield Invalidity(code=InvalidCode.SUSPENDED, detail=detail)


def _gap(record: Record, readings: Sequence[Power]) -> Iterator[Invalidity]:
    window = block_window(record)
    times_s = [p.t_ns * NS for p in readings]
    sampled = record.sampler.readings > 0 if record.sampler else len(times_s) > 1
    if window is None or not sampled:
        return
    edges = [window.start_s, *times_s, window.end_s]
    gap_s, at_s = max((later - earlier, earlier) for earlier, later in pairwise(edges))
    period_s = record.sampler.period_ns * NS if record.sampler else median(b - a for a, b in pairwise(times_s))
    if gap_s > (GAP_PERIODS + LATE_PERIODS) * period_s:
        detail = f"no reading for {gap_s:.3f} s at {at_s - window.start_s:.1f} s of the block, period {period_s:.3f} s"
        yield Invalidity(code=InvalidCode.SAMPLING_GAP, detail=detail)


def _states(record: Record, wanted: Conditions, *, sustained: bool) -> Iterator[Invalidity]:
    both = (("before", record.state_before), ("after", record.state_after))
    states = [(when, state) for when, state in both if state]
    for when, state in states:
        if sustained and when == "after":
            continue
        if (state.thermal_status or 0) > wanted.thermal_status_max:
            detail = f"{state.thermal_status} {when} the block, at most {wanted.thermal_status_max}"
            yield Invalidity(code=InvalidCode.THERMAL_STATUS, detail=detail)
            break
    low, high = wanted.battery_percent.min or 0.0, wanted.battery_percent.max
    high = 100.0 if high is None else high
    for when, state in states:
        if state.battery_percent is not None and not low <= state.battery_percent <= high:
            detail = f"battery at {state.battery_percent:g} % {when} the block, wanted {low:g} to {high:g} %"
            yield Invalidity(code=InvalidCode.LEVEL_LEFT, detail=detail)
            break


def _idle_differs(record: Record, found: Sequence[Origin]) -> Iterator[Invalidity]:
    rests = rest_windows(record)
    for origin in found if phase_window(record, "load") else ():
        change = rest_change(origin.trace, rests)
        if change is None:
            continue
        bound_w = max(IDLE_W, IDLE_SHARE * abs(change.mean_w)) + COVERAGE * change.random_w
        if abs(change.change_w) > bound_w:
            detail = f"{change.change_w:+.3f} W after the load by {origin.name}, at most {bound_w:.3f} W"
            yield Invalidity(code=InvalidCode.IDLE_DIFFERS, detail=detail)
        return


def _impossible(record: Record, found: Sequence[Origin]) -> Iterator[Invalidity]:
    """Yield impossible readings of the source that was measured for; of a gauge also where no reading is left."""
    measured = _measured(found)
    left_out = measured.left_out if measured else gauge_readings(record.power, calibration(record)).left_out
    if left_out.share > MOST_LEFT_OUT:
        yield Invalidity(code=InvalidCode.IMPOSSIBLE_READINGS, detail=f"{left_out.text}, at most {MOST_LEFT_OUT:.0%}")


def _supplied_at_rest(record: Record, found: Sequence[Origin]) -> Iterator[Invalidity]:
    """A supply that gives all of a resting phone's current, and a part of that under load, while the battery's status
    says Discharging: its gauge shows nothing at rest."""
    measured, rests = _measured(found), rest_windows(record)
    if measured is None or measured.scope is not Scope.DEVICE or measured.trace.quantum_w > telemetry.PHONE_W[0]:
        return
    at_rest = np.concatenate([_inside_w(measured.trace, rest) for rest in rests] or [np.empty(0)])
    load = phase_window(record, "load")
    at_work = _inside_w(measured.trace, load) if load else np.empty(0)
    load_w = float(at_work.mean()) if len(at_work) else 0.0
    nothing = int((np.abs(at_rest) < NOTHING * load_w).sum())
    if load_w > 0 and nothing > MOST_LEFT_OUT * len(at_rest):
        hidden = "a supply hides what it draws"
        detail = f"{nothing} of {counted(len(at_rest), 'reading')} at rest are 0 W by {measured.name}: {hidden}"
        yield Invalidity(code=InvalidCode.SUPPLIED_AT_REST, detail=detail)


def _measured(found: Sequence[Origin]) -> Origin | None:
    """The best source that was measured for the block, else the gauge, which is read anyway."""
    return next((origin for origin in found if origin.source is not PowerSource.GAUGE), next(iter(found), None))


def _inside_w(trace: Trace, window: Window) -> NDArray[np.float64]:
    return trace.power_w[(trace.t_s >= window.start_s) & (trace.t_s <= window.end_s)]


def _clock_map(record: Record) -> Iterator[Invalidity]:
    load = phase_window(record, "load")
    for series in record.series:
        if load and series.clock and series.clock.residual_ns * NS > CLOCK_SHARE * load.length_s:
            residual_ms = series.clock.residual_ns / 1e6
            detail = f"{series.name}: clocks agree within {residual_ms:.1f} ms, the load lasts {load.length_s:.1f} s"
            yield Invalidity(code=InvalidCode.CLOCK_MAP, detail=detail)
            return


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
    seen = counted(max(len(by_status), len(by_sign)), "reading")
    detail = f"{evidence} at {since_start_s(record, first):.1f} s of the block, {seen}"
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
