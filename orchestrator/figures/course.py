"""Reduce a sustained load to a course of a few points: speed, power, temperature and clock over the same stretches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from orchestrator.energy import cumulative_j, origins
from orchestrator.model import telemetry
from orchestrator.model.event import Power, Sample
from orchestrator.model.record import Record

from .block import Course
from .plateau import plateau_of, units_of
from .times import NS_PER_MS, NS_PER_S

BINS = 30
FIRST_S = 60.0
"""The reference speed is that of the first minute (of the first fifth of a shorter load)."""
LAST_SHARE = 0.1
"""The end is the last tenth."""

Bins = tuple[float | None, ...]


def course_of(record: Record, timed: Sequence[Sample]) -> Course | None:
    """Return the course of a record's timed samples in order; None where they are too few, or too short, to speak of a
    load."""
    units = units_of(timed)
    if len(units) < 2:
        return None
    start_ns = timed[0].start_ns
    curve = [((end - start_ns) / NS_PER_S, (end - start) / count / NS_PER_MS) for start, end, count in units]
    load_s = curve[-1][0]
    edges_s = [load_s * i / BINS for i in range(BINS + 1)]
    since_s = [(each, (each.t_ns - start_ns) / NS_PER_S) for each in record.power]
    return Course(
        load_s=load_s,
        bins_ms=_medians(curve, edges_s),
        first_ms=_median(curve, 0.0, min(FIRST_S, load_s / 5)),
        last_ms=_median(curve, load_s * (1 - LAST_SHARE), load_s),
        power_w=_power_w(record, start_ns / NS_PER_S, edges_s),
        temp_c=_medians([(at, temp) for each, at in since_s if (temp := _temp_c(each)) is not None], edges_s),
        clock_hz=_medians([(at, clock) for each, at in since_s if (clock := _clock_hz(each)) is not None], edges_s),
        plateau=plateau_of(timed),
    )


def _medians(curve: Sequence[tuple[float, float]], edges_s: Sequence[float]) -> Bins:
    """Return the median of each stretch; nothing of a curve without points."""
    return tuple(_median(curve, *edges) for edges in pairwise(edges_s)) if curve else ()


def _median(curve: Sequence[tuple[float, float]], start_s: float, end_s: float) -> float | None:
    """Return the median of the points of a stretch of time."""
    inside = [value for t, value in curve if start_s < t <= end_s]
    return median(inside) if inside else None


def _power_w(record: Record, start_s: float, edges_s: Sequence[float]) -> Bins:
    """Return the mean power of each stretch by the best source; None of one that the trace does not cover."""
    found = origins(record)
    if not found:
        return ()
    trace, at_s = found[0].trace, np.array(edges_s) + start_s
    covered = (at_s[:-1] >= trace.t_s[0] - trace.news_s) & (at_s[1:] <= trace.t_s[-1] + trace.news_s)
    power_w = np.diff(cumulative_j(trace, at_s)) / np.diff(at_s)
    return tuple(float(each) if known else None for each, known in zip(power_w, covered, strict=True))


def _temp_c(reading: Power) -> float | None:
    """Return the skin's temperature, else the battery's."""
    return telemetry.celsius_of_tenths(reading.temp_dc if reading.skin_dc is None else reading.skin_dc)


def _clock_hz(reading: Power) -> float | None:
    """Return the clock of the processor that works, as far as it is told: that of the GPU while it is busy, else the
    fastest core's; what the system allows where the clock itself is closed."""
    gpu_hz = reading.gpu_hz or reading.gpu_cap_hz
    cpu_khz = max(reading.cpu_khz or reading.cpu_cap_khz, default=0)
    return gpu_hz if gpu_hz and (reading.gpu_busy or not cpu_khz) else cpu_khz * 1000.0 or None
