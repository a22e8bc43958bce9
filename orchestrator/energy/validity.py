"""Whether a block counts: everything in its own record that makes its figures unusable. Pure.

The reasons and their thresholds are those of the measurement protocol (docs/decisions/0015-measurement-protocol.md);
the record is kept with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import mean, median

from orchestrator.model.event import Power
from orchestrator.model.experiment import Conditions, Sampling
from orchestrator.model.record import InvalidCode, Invalidity, Record

from .block import idle_at
from .frozen import find_frozen
from .sources import DISCHARGING, NS, origins
from .throttling import latency_change
from .trace import GAP_PERIODS
from .windows import Window, phase_window

CHARGING_NOISES = 5.0
"""A current into the battery counts as charging from so many standard deviations of a reading ..."""
CHARGING_A = 0.02
"""... and from this."""
CHARGING_READINGS = 3
"""... in so many readings."""
IDLE_SHARE, IDLE_W = 0.05, 0.05
"""By which the rests before and after may differ, the larger of both: measurement protocol, step 7."""
BUSY_ELSEWHERE = 0.1
"""Share of all cores that others may use: our own bound, below one busy core of eight."""
BUSY_WINDOW_S = 3.0
"""As the mean of so long."""
CLOCK_SHARE = 0.001
"""Residual of the map of clocks over the load's length: measurement protocol, step 12."""


def find_invalid(record: Record, wanted: Conditions, sampling: Sampling | None = None) -> tuple[Invalidity, ...]:
    """Why the block does not count, in a fixed order; empty: it counts.

    A sustained load is there to see heat: in that mode slower inferences, lower clock caps and thermal status at the
    end are results (`latency_change` tells the first).
    """
    sustained = sampling is not None and sampling.mode == "sustained"
    readings = in_block(record)
    return (
        *_charging(record, readings, wanted),
        *find_frozen(record),
        *_gap(record, readings),
        *(() if sustained else _clock_cap(record, readings)),
        *(() if sustained else _latency(record)),
        *_states(record, wanted, sustained=sustained),
        *_background(record, readings),
        *_idle_differs(record),
        *_clock_map(record),
    )


def block_window(record: Record) -> Window | None:
    """From the first phase's start to the last one's end."""
    if not record.phases:
        return phase_window(record, "load")
    return Window(min(p.start_ns for p in record.phases) * NS, max(p.end_ns for p in record.phases) * NS)


def in_block(record: Record) -> list[Power]:
    """Readings inside the block: before and after it the supply may be on, and nobody minds."""
    window = block_window(record)
    return [p for p in record.power if window and window.start_s <= p.t_ns * NS <= window.end_s]


def _between(readings: Sequence[Power], window: Window | None) -> list[Power]:
    return [p for p in readings if window and window.start_s <= p.t_ns * NS <= window.end_s]


def _charging(record: Record, readings: Sequence[Power], wanted: Conditions) -> Iterator[Invalidity]:
    """Seen by the status or by a current into the battery. A phone that charges throughout, where any supply is
    allowed, is as it was asked for: its energy has a doubt."""
    told = [p for p in readings if p.status]
    by_status = [p for p in told if p.status != DISCHARGING]
    by_sign = _into_battery(record, readings)
    throughout = bool(told) and len(by_status) == len(told)
    if not (by_status or by_sign) or (wanted.supply == "any" and throughout):
        return
    first = (by_status or by_sign)[0]
    said = f"status {first.status!r}" if by_status else "the current goes into the battery"
    detail = f"{said} at {_since(record, first):.1f} s of the block, {max(len(by_status), len(by_sign))} readings"
    yield Invalidity(code=InvalidCode.CHARGING, detail=detail)


def _into_battery(record: Record, readings: Sequence[Power]) -> list[Power]:
    gauge = record.gauge
    if gauge is None:
        return []
    bound_a = max(CHARGING_A, CHARGING_NOISES * gauge.noise_a)
    scale = gauge.ampere_per_unit * gauge.discharging_sign
    found = [p for p in readings if p.current_ua is not None and p.current_ua * scale < -bound_a]
    return found if len(found) >= CHARGING_READINGS else []


def _gap(record: Record, readings: Sequence[Power]) -> Iterator[Invalidity]:
    window = block_window(record)
    times_s = [p.t_ns * NS for p in readings]
    if window is None or (record.sampler is None and len(times_s) < 2):
        return
    edges = [window.start_s, *times_s, window.end_s]
    gap_s, at_s = max((later - earlier, earlier) for earlier, later in pairwise(edges))
    period_s = record.sampler.period_ns * NS if record.sampler else median(b - a for a, b in pairwise(times_s))
    if gap_s > GAP_PERIODS * period_s:
        detail = f"no reading for {gap_s:.3f} s at {at_s - window.start_s:.1f} s of the block, period {period_s:.3f} s"
        yield Invalidity(code=InvalidCode.SAMPLING_GAP, detail=detail)


def _clock_cap(record: Record, readings: Sequence[Power]) -> Iterator[Invalidity]:
    """Until the end of the load: caps that rise again while the phone cools down do no harm."""
    load = phase_window(record, "load")
    for before, after in pairwise(p for p in readings if load and p.t_ns * NS <= load.end_s):
        if change := _cap_change(before, after):
            detail = f"{change} at {_since(record, after):.1f} s of the block"
            yield Invalidity(code=InvalidCode.CLOCK_CAP, detail=detail)
            return


def _cap_change(before: Power, after: Power) -> str:
    if before.gpu_cap_hz and after.gpu_cap_hz and before.gpu_cap_hz != after.gpu_cap_hz:
        return f"highest GPU clock {before.gpu_cap_hz // 10**6} -> {after.gpu_cap_hz // 10**6} MHz"
    if len(before.cpu_cap_khz) == len(after.cpu_cap_khz):
        for core, (was, now) in enumerate(zip(before.cpu_cap_khz, after.cpu_cap_khz, strict=True)):
            if was != now:
                return f"highest clock of core {core} {was // 1000} -> {now // 1000} MHz"
    return ""


def _latency(record: Record) -> Iterator[Invalidity]:
    change = latency_change(record)
    if change and change.significant:
        code = InvalidCode.THROTTLED if change.throttled else InvalidCode.DRIFT
        detail = f"last fifth {change.last_ms:.2f} ms, first {change.first_ms:.2f} ms: {change.share:+.1%}"
        yield Invalidity(code=code, detail=detail)


def _states(record: Record, wanted: Conditions, *, sustained: bool) -> Iterator[Invalidity]:
    after = None if sustained else record.state_after
    for when, state in (("before", record.state_before), ("after", after)):
        if state and (state.thermal_status or 0) > wanted.thermal_status_max:
            detail = f"{state.thermal_status} {when} the block, at most {wanted.thermal_status_max}"
            yield Invalidity(code=InvalidCode.THERMAL_STATUS, detail=detail)
            break
    window = wanted.battery_percent
    for when, state in (("before", record.state_before), ("after", record.state_after)):
        level = None if state is None else state.battery_percent
        if level is not None and not (window.min or 0) <= level <= (100 if window.max is None else window.max):
            detail = f"battery at {level:g} % {when} the block, wanted {window.min or 0:g} to {window.max or 100:g} %"
            yield Invalidity(code=InvalidCode.LEVEL_LEFT, detail=detail)
            break


def _background(record: Record, readings: Sequence[Power]) -> Iterator[Invalidity]:
    """Others' share of the cores at rest, and above that at rest under load."""
    rests = [phase_window(record, "idle_before"), phase_window(record, "idle_after")]
    at_rest = [share for p in _between(readings, rests[0]) if (share := _others(p)) is not None]
    usual = median(at_rest) if at_rest else 0.0
    for name, window, bound in (
        ("at rest", rests[0], BUSY_ELSEWHERE),
        ("under load", phase_window(record, "load"), BUSY_ELSEWHERE + usual),
        ("at rest", rests[1], BUSY_ELSEWHERE),
    ):
        busiest = _busiest(_between(readings, window))
        if busiest is not None and busiest > bound:
            detail = f"others used {busiest:.0%} of all cores {name} over {BUSY_WINDOW_S:g} s, at most {bound:.0%}"
            yield Invalidity(code=InvalidCode.BACKGROUND_LOAD, detail=detail)
            return


def _others(reading: Power) -> float | None:
    if reading.cpu_busy is None or reading.own_busy is None:
        return None
    return max(0.0, reading.cpu_busy - reading.own_busy)


def _busiest(readings: Sequence[Power]) -> float | None:
    """Highest mean of others' share over `BUSY_WINDOW_S`, of parts that are at least half as long."""
    parts: dict[int, list[float]] = {}
    for p in readings:
        if (share := _others(p)) is not None:
            parts.setdefault(int((p.t_ns - readings[0].t_ns) * NS / BUSY_WINDOW_S), []).append(share)
    fullest = max(map(len, parts.values()), default=0)
    return max((mean(part) for part in parts.values() if 2 * len(part) >= fullest), default=None)


def _idle_differs(record: Record) -> Iterator[Invalidity]:
    load = phase_window(record, "load")
    for origin in origins(record) if load else ():
        idle = idle_at(record, origin.trace, load.centre_s) if load else None
        if idle is None or idle.change_w is None:
            continue
        bound_w = max(IDLE_W, IDLE_SHARE * abs(idle.mean_w))
        if abs(idle.change_w) > bound_w:
            detail = f"{idle.change_w:+.3f} W after the load by {origin.name}, at most {bound_w:.3f} W"
            yield Invalidity(code=InvalidCode.IDLE_DIFFERS, detail=detail)
        return


def _clock_map(record: Record) -> Iterator[Invalidity]:
    load = phase_window(record, "load")
    for series in record.series:
        if load and series.clock and series.clock.residual_ns * NS > CLOCK_SHARE * load.length_s:
            residual_ms = series.clock.residual_ns / 1e6
            detail = f"{series.name}: clocks agree within {residual_ms:.1f} ms, the load lasts {load.length_s:.1f} s"
            yield Invalidity(code=InvalidCode.CLOCK_MAP, detail=detail)
            return


def _since(record: Record, reading: Power) -> float:
    window = block_window(record)
    return reading.t_ns * NS - (window.start_s if window else 0.0)
