"""Split the power readings of a record into traces of one source each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

import numpy as np

from orchestrator.model.device import Reading
from orchestrator.model.event import Power
from orchestrator.model.power import ASSUMED, GaugeCalibration, PowerSeries, PowerSource, Scope
from orchestrator.model.record import Record

from .refreshes import even_times, news_of
from .trace import Trace, cumulative_j

NS = 1e-9
DISCHARGING = "Discharging"
"""What the kernel prints as the battery's status while the phone runs from it."""

BEST_FIRST = (
    PowerSource.METER,
    PowerSource.NVML,
    PowerSource.RAPL,
    PowerSource.GAUGE,
    PowerSource.PERFETTO,
    PowerSource.ODPM,
    PowerSource.TRACE,
    PowerSource.MODEL,
)
"""What `auto` takes: a meter, else the workstation's counter, else the gauge, else what sees only a part."""

FEWEST_VALUES = 5
"""Different readings of a gauge of unknown noise that show its step."""

Wanted = PowerSource | Literal["auto"]


@dataclass(frozen=True, eq=False)
class Origin:
    """A trace with what its figures are called."""

    trace: Trace
    source: PowerSource
    scope: Scope
    name: str


def origins(record: Record, wanted: Wanted = "auto") -> tuple[Origin, ...]:
    """The traces that the record has of the wanted source, or of all, the best first."""
    if not (record.power or record.series or record.rails):
        return ()
    sources = BEST_FIRST if wanted == "auto" else (PowerSource(wanted),)
    found = (_origin(record, source) for source in sources)
    return tuple(origin for origin in found if origin is not None)


def _origin(record: Record, source: PowerSource) -> Origin | None:
    trace = gauge_trace(record, once=True) if source is PowerSource.GAUGE else series_trace(record, source)
    if trace is None:
        return None
    if source is PowerSource.GAUGE:
        return Origin(trace, source, Scope.DEVICE, "battery gauge")
    used = _series_of(record, source)
    if used:
        return Origin(trace, source, used[0].scope, ", ".join(series.name for series in used))
    return Origin(trace, source, Scope.RAILS, ", ".join(sorted(record.rails[0].energy_uws)))


def gauge_trace(record: Record, *, once: bool = False) -> Trace | None:
    """The battery gauge's power, positive while it discharges; None where current or voltage were not readable.
    `once`: each refresh once, instead of every reading."""
    readings = [(p, p.current_ua, p.voltage_uv) for p in record.power if p.current_ua is not None and p.voltage_uv]
    if len(readings) < 2:
        return None
    gauge = calibration(record)
    raw = [int(current or 0) for _, current, _ in readings]
    volts = np.array([voltage for _, _, voltage in readings]) * 1e-6
    usual_v, refresh_s = float(np.median(volts)), gauge.refresh_ns * NS
    t_s, shown = np.array([p.t_ns for p, _, _ in readings]) * NS, np.array(raw)
    news = news_of(t_s, shown, refresh_s) if once else np.arange(len(t_s))
    is_seen_late = len(news) < len(t_s)
    spacing_s = float(np.median(np.diff(t_s)))
    return Trace(
        t_s=even_times(t_s[news], refresh_s, spacing_s) if is_seen_late else t_s,
        clock_s=spacing_s if is_seen_late else 0.0,
        power_w=(shown * gauge.discharge_a_per_unit * volts)[news],
        gain_uncertainty=gauge.gain_uncertainty,
        noise_w=gauge.noise_a * usual_v,
        refresh_s=refresh_s,
        quantum_w=_quantum_a(raw, gauge) * usual_v,
    )


def _quantum_a(raw: list[int], gauge: GaugeCalibration) -> float:
    """The step that all readings are multiples of; at most what the noise, which contains it, leaves possible."""
    quantum_a = math.gcd(*raw) * gauge.ampere_per_unit
    if gauge.noise_a > 0:
        return min(quantum_a, math.sqrt(12) * gauge.noise_a)
    return quantum_a if len(set(raw)) >= FEWEST_VALUES else 0.0


def calibration(record: Record) -> GaugeCalibration:
    """Of the gauge that a record's readings come from."""
    return calibration_of(record.gauge, [(p.current_ua, p.status) for p in record.power])


_ASSUMED_BY_SIGN = {
    positive: ASSUMED.model_copy(update={"discharging_sign": 1 if positive else -1}) for positive in (True, False)
}


def battery_draw_a(reading: Reading, gauge: GaugeCalibration | None) -> float | None:
    """Current out of the battery at one moment, A, negative while it is charged; None where the phone does not tell.
    `gauge`: as enrolment found it."""
    if reading.current_raw is None:
        return None
    found = calibration_of(gauge, [(reading.current_raw, reading.status)])
    return reading.current_raw * found.discharge_a_per_unit


def calibration_of(gauge: GaugeCalibration | None, readings: Sequence[tuple[int | None, str]]) -> GaugeCalibration:
    """As enrolment found it; without one what the kernel's documentation says, but with the sign that most of the
    readings (current, status) have while the status says Discharging."""
    if gauge is not None:
        return gauge
    raw = [current for current, status in readings if current and status == DISCHARGING]
    if not raw:
        return ASSUMED
    return _ASSUMED_BY_SIGN[median(raw) > 0]


def series_trace(record: Record, source: PowerSource) -> Trace | None:
    """Of a source that is not the gauge, on the device's clock; None where the record lacks it.

    Of several meters or counters the first counts. Rails are added up, because one rail alone says little: the sum is
    comparable with that of the same rails only, and is not the phone's power (they are multiplexed).
    """
    traces = [_trace_of(series) for series in _series_of(record, source)]
    if traces:
        return _sum(traces) if len(traces) > 1 else traces[0]
    return _rails_trace(record) if source is PowerSource.ODPM else None


def _series_of(record: Record, source: PowerSource) -> list[PowerSeries]:
    found = [series for series in record.series if series.source is source and len(series.t_ns) >= 2]
    return found if found and found[0].scope is Scope.RAILS else found[:1]


def _trace_of(series: PowerSeries) -> Trace:
    return Trace(
        t_s=np.array(series.t_ns) * NS,
        power_w=np.array(series.power_w),
        is_mean=series.is_mean,
        gain_uncertainty=series.gain_uncertainty,
        clock_s=series.clock.residual_ns * NS if series.clock else 0.0,
    )


def _sum(traces: list[Trace]) -> Trace | None:
    """Means between all times at which any of them was read, over the time that all of them cover."""
    first_s, last_s = max(float(t.t_s[0]) for t in traces), min(float(t.t_s[-1]) for t in traces)
    t_s = np.unique(np.concatenate([t.t_s for t in traces]))
    t_s = t_s[(t_s >= first_s) & (t_s <= last_s)]
    if len(t_s) < 2:
        return None
    power_w = np.diff(sum(cumulative_j(trace, t_s) for trace in traces)) / np.diff(t_s)
    whole = np.concatenate((power_w[:1], power_w))
    return replace(traces[0], t_s=t_s, power_w=whole, is_mean=True, clock_s=max(t.clock_s for t in traces))


RAILS_GAIN = 0.03
"""Standard uncertainty of the rails' gain, as a share: assumed, no data sheet is public."""


def _rails_trace(record: Record) -> Trace | None:
    """The sum of the rails as the agent read them, where the host has made no series of them."""
    if len(record.rails) < 2:
        return None
    t_s = np.array([reading.t_ns for reading in record.rails]) * NS
    energy_j = np.array([sum(reading.energy_uws.values()) for reading in record.rails]) * 1e-6
    news = np.concatenate(([True], np.diff(t_s) > 0))
    t_s, energy_j = t_s[news], energy_j[news]
    if len(t_s) < 2:
        return None
    power_w = np.diff(energy_j) / np.diff(t_s)
    return Trace(t_s, np.concatenate((power_w[:1], power_w)), is_mean=True, gain_uncertainty=RAILS_GAIN)


def charging_readings(readings: tuple[Power, ...]) -> int:
    """How many readings' status says anything but Discharging; readings without a status do not count."""
    return sum(bool(reading.status) and reading.status != DISCHARGING for reading in readings)
