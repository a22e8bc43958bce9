"""Split the power readings of a record into traces of one source each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.model import telemetry
from orchestrator.model.device import Reading
from orchestrator.model.errors import StableError
from orchestrator.model.event import Power
from orchestrator.model.power import ASSUMED, GaugeCalibration, PowerSeries, PowerSource, Scope
from orchestrator.model.record import Record

from .gauge_readings import NOTHING, NS, GaugeReadings, LeftOut, gauge_readings, named
from .refreshes import even_times, news_of
from .trace import Trace, cumulative_j

DISCHARGING = "Discharging"
"""The battery's status that the kernel prints while the phone runs from it."""

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
"""The order of `auto`: a meter, else the workstation's counter, else the gauge, else what sees only a part."""

BOARD_W = -1.0, 5000.0
"""The range of what a processor or a graphics board draws."""
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
    left_out: LeftOut = NOTHING
    """Readings that cannot be."""
    assumed_v: str = ""
    """The reason why the voltage was assumed."""


def origins(record: Record, wanted: Wanted = "auto") -> tuple[Origin, ...]:
    """The traces that the record has of the wanted source, or of all, the best first."""
    if not (record.power or record.series or record.rails) or any(series.lost for series in record.series):
        return ()  # figures of another source would be taken for those of the one that was lost
    sources = BEST_FIRST if wanted == "auto" else (PowerSource(wanted),)
    found = []
    for source in sources:
        with suppress(StableError):  # what is no trace costs the energy, and not the record
            found.append(_origin(record, source))
    return tuple(origin for origin in found if origin is not None)


def _origin(record: Record, source: PowerSource) -> Origin | None:
    if source is PowerSource.GAUGE:
        gauge = calibration(record)
        found = gauge_readings(record.power, gauge)
        trace = _trace_of_gauge(found, gauge)
        return Origin(trace, source, Scope.DEVICE, "battery gauge", found.left_out, found.assumed_v) if trace else None
    trace, used = series_trace(record, source), _series_of(record, source)
    if trace is None:
        return None
    if used:
        name = ", ".join(series.name for series in used)
        left_out = _left_out([power_w for series in used for power_w in series.power_w], record.device.kind)
        return Origin(trace, source, used[0].scope, name, left_out)
    name, left_out = ", ".join(sorted(record.rails[0].energy_uws)), _left_out(_rails_w(record)[1], record.device.kind)
    return Origin(trace, source, Scope.RAILS, name, left_out)


def _trace_of_gauge(found: GaugeReadings, gauge: GaugeCalibration) -> Trace | None:
    """The battery gauge's power, positive while it discharges, each refresh once; None without a readable current."""
    if len(found.t_s) < 2:
        return None
    usual_v, refresh_s, t_s = float(np.median(found.volts)), gauge.refresh_ns * NS, found.t_s
    news = news_of(t_s, found.raw, refresh_s)
    is_seen_late = len(news) < len(t_s)
    spacing_s = float(np.median(np.diff(t_s)))
    assumed = telemetry.USUAL_V_UNCERTAINTY if found.assumed_v else 0.0
    return Trace(
        t_s=even_times(t_s[news], refresh_s, spacing_s) if is_seen_late else t_s,
        clock_s=spacing_s if is_seen_late else 0.0,
        power_w=(found.raw * gauge.discharge_a_per_unit * found.volts)[news],
        gain_uncertainty=math.hypot(gauge.gain_uncertainty, assumed),
        noise_w=gauge.noise_a * usual_v,
        refresh_s=refresh_s,
        quantum_w=_quantum_a(found.raw.tolist(), gauge) * usual_v,
    )


def _quantum_a(raw: list[int], gauge: GaugeCalibration) -> float:
    """The step that all readings are multiples of; at most what the noise, which contains it, leaves possible."""
    quantum_a = math.gcd(*raw) * gauge.ampere_per_unit
    if gauge.noise_a > 0:
        return min(quantum_a, math.sqrt(12) * gauge.noise_a)
    return quantum_a if len(set(raw)) >= FEWEST_VALUES else 0.0


def calibration(record: Record) -> GaugeCalibration:
    """Return the calibration of the gauge that a record's readings come from."""
    return calibration_of(record.gauge, [(p.current_ua, p.status) for p in record.power])


AMBIGUOUS = 30_000
"""Raw currents up to this may be uA or mA; more in mA no battery gives or takes."""
_ASSUMED_BY_SIGN = {
    positive: ASSUMED.model_copy(update={"discharging_sign": 1 if positive else -1}) for positive in (True, False)
}


def battery_draw_a(reading: Reading, gauge: GaugeCalibration | None) -> float | None:
    """Current out of the battery at one moment, A, negative while it is charged; None where the phone does not tell, or
    says what cannot be. `gauge`: as enrolment found it; without one, None as long as a figure fits uA and mA alike."""
    raw = telemetry.current(reading.current_raw)
    if raw is None or (gauge is None and abs(raw) <= AMBIGUOUS):
        return None
    return draw_of(raw, reading.voltage_v, calibration_of(gauge, [(raw, reading.status)]))


def draw_of(raw: int | None, voltage_v: float | None, gauge: GaugeCalibration) -> float | None:
    """Current out of the battery, A, of one reading; None for what cannot be."""
    if telemetry.current(raw) is None:
        return None
    draw_a = (raw or 0) * gauge.discharge_a_per_unit
    return draw_a if telemetry.is_power(draw_a * (voltage_v or telemetry.USUAL_V)) else None


def calibration_of(gauge: GaugeCalibration | None, readings: Sequence[tuple[int | None, str]]) -> GaugeCalibration:
    """Return the calibration that enrolment found; without one what the kernel's documentation says, but with the
    sign that most of the readings (current, status) have while the status says Discharging."""
    if gauge is not None:
        return gauge
    raw = [current for current, status in readings if current and status == DISCHARGING]
    if not raw:
        return ASSUMED
    return _ASSUMED_BY_SIGN[median(raw) > 0]


def series_trace(record: Record, source: PowerSource) -> Trace | None:
    """Return the trace of a source other than the gauge, on the device's clock; None where the record lacks it.

    Of several meters or counters the first counts. Rails are added up, because one rail alone says little: the sum is
    comparable with that of the same rails only, and is not the phone's power (they are multiplexed).
    """
    traces = [
        Trace(
            t_s=np.array(series.t_ns)[fits] * NS,
            power_w=np.array(series.power_w)[fits],
            is_mean=series.is_mean,
            gain_uncertainty=series.gain_uncertainty,
            clock_s=series.clock.residual_ns * NS if series.clock else 0.0,
        )
        for series in _series_of(record, source)
        if (fits := _possible(series.power_w, record.device.kind)).sum() >= 2
    ]
    if traces:
        return _sum(traces) if len(traces) > 1 else traces[0]
    return _rails_trace(record) if source is PowerSource.ODPM else None


def _series_of(record: Record, source: PowerSource) -> list[PowerSeries]:
    found = [series for series in record.series if series.source is source and len(series.t_ns) >= 2]
    return found if found and found[0].scope is Scope.RAILS else found[:1]


def _possible(values_w: Sequence[float], kind: str) -> NDArray[np.bool_]:
    """Return which readings a phone, or a computer's board, can have drawn; all where most would not be: then it is
    the unit that is wrong, which their mean shows."""
    power_w = np.array(values_w, dtype=np.float64)
    least_w, most_w = (-telemetry.PHONE_W[1], telemetry.PHONE_W[1]) if kind == "phone" else BOARD_W
    finite = np.isfinite(power_w)
    fits = finite & (power_w >= least_w) & (power_w <= most_w)
    return fits if 2 * fits.sum() > finite.sum() else finite


def _left_out(values_w: Sequence[float], kind: str) -> LeftOut:
    fits = _possible(values_w, kind).tolist()
    wrong = [("power of W", round(power_w, 1)) for power_w, fit in zip(values_w, fits, strict=True) if not fit]
    return LeftOut(len(wrong), len(fits), named(wrong))


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
    t_s, power_w = _rails_w(record)
    fits = _possible(power_w, record.device.kind)
    if fits.sum() < 2:
        return None
    return Trace(t_s[fits], np.array(power_w)[fits], is_mean=True, gain_uncertainty=RAILS_GAIN)


def _rails_w(record: Record) -> tuple[NDArray[np.float64], list[float]]:
    """Times and mean powers since the reading before; the first, without a past, repeats the second."""
    t_s = np.array([reading.t_ns for reading in record.rails]) * NS
    energy_j = np.array([sum(reading.energy_uws.values()) for reading in record.rails]) * 1e-6
    news = np.concatenate(([True], np.diff(t_s) > 0))[: len(t_s)]
    t_s, energy_j = t_s[news], energy_j[news]
    power_w = np.diff(energy_j) / np.diff(t_s)
    return t_s[: len(power_w) + 1 if len(power_w) else 0], np.concatenate((power_w[:1], power_w)).tolist()


def charging_readings(readings: tuple[Power, ...]) -> int:
    """Count the readings whose status is anything but Discharging; readings without a status do not count."""
    return sum(bool(reading.status) and reading.status != DISCHARGING for reading in readings)
