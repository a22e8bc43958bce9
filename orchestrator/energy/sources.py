"""The traces of a record, each of one source; sources are never mixed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from orchestrator.model.event import Power
from orchestrator.model.power import ASSUMED, GaugeCalibration, PowerSource, Scope
from orchestrator.model.record import Record

from .trace import Trace

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
    sources = BEST_FIRST if wanted == "auto" else (PowerSource(wanted),)
    found = (_origin(record, source) for source in sources)
    return tuple(origin for origin in found if origin is not None)


def _origin(record: Record, source: PowerSource) -> Origin | None:
    if source is PowerSource.GAUGE:
        trace = gauge_trace(record)
        return None if trace is None else Origin(trace, source, Scope.DEVICE, "battery gauge")
    for series in record.series:
        if series.source is source and (trace := series_trace(record, source)) is not None:
            return Origin(trace, source, series.scope, series.name)
    trace = _rails_trace(record) if source is PowerSource.ODPM else None
    return None if trace is None else Origin(trace, source, Scope.RAILS, ", ".join(sorted(record.rails[0].energy_uws)))


def gauge_trace(record: Record) -> Trace | None:
    """The battery gauge's power, positive while it discharges; None where current or voltage were not readable."""
    readings = [(p, p.current_ua, p.voltage_uv) for p in record.power if p.current_ua is not None and p.voltage_uv]
    if len(readings) < 2:
        return None
    gauge = calibration(record)
    raw = [int(current or 0) for _, current, _ in readings]
    volts = np.array([voltage for _, _, voltage in readings]) * 1e-6
    usual_v = float(np.median(volts))
    return Trace(
        t_s=np.array([p.t_ns for p, _, _ in readings]) * NS,
        power_w=np.array(raw) * (gauge.ampere_per_unit * gauge.discharging_sign) * volts,
        gain_uncertainty=gauge.gain_uncertainty,
        noise_w=gauge.noise_a * usual_v,
        refresh_s=gauge.refresh_ns * NS,
        quantum_w=_quantum_a(raw, gauge) * usual_v,
    )


def _quantum_a(raw: list[int], gauge: GaugeCalibration) -> float:
    """The step that all readings are multiples of; at most what the noise, which contains it, leaves possible."""
    quantum_a = math.gcd(*raw) * gauge.ampere_per_unit
    if gauge.noise_a > 0:
        return min(quantum_a, math.sqrt(12) * gauge.noise_a)
    return quantum_a if len(set(raw)) >= FEWEST_VALUES else 0.0


def calibration(record: Record) -> GaugeCalibration:
    """As enrolment found it; without one what the kernel's documentation says, but with the sign that most readings
    have while the status says Discharging."""
    if record.gauge is not None:
        return record.gauge
    raw = [p.current_ua for p in record.power if p.current_ua and p.status == DISCHARGING]
    if not raw:
        return ASSUMED
    return ASSUMED.model_copy(update={"discharging_sign": 1 if float(np.median(raw)) > 0 else -1})


def series_trace(record: Record, source: PowerSource) -> Trace | None:
    """The first series of a source that is not the gauge, on the device's clock; None where the record lacks it."""
    for series in record.series:
        if series.source is source and len(series.t_ns) >= 2:
            return Trace(
                t_s=np.array(series.t_ns) * NS,
                power_w=np.array(series.power_w),
                is_mean=series.is_mean,
                gain_uncertainty=series.gain_uncertainty,
                clock_s=series.clock.residual_ns * NS if series.clock else 0.0,
            )
    return _rails_trace(record) if source is PowerSource.ODPM else None


RAILS_GAIN = 0.01
"""Standard uncertainty of the rails' gain, as a share: assumed, no data sheet is public."""


def _rails_trace(record: Record) -> Trace | None:
    """The sum of the rails that the agent read: comparable with the same rails only, and not the phone's power."""
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
