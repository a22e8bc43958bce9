"""Detect that clocks fell or inferences became slower during a block."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from orchestrator.model.base import Model
from orchestrator.model.event import Power
from orchestrator.model.record import InvalidCode, Invalidity, Record

from .sources import NS
from .windows import phase_window, since_start_s

CHANGE = 0.05
"""Last fifth's median latency against the first fifth's: measurement protocol, step 9."""
FEWEST_SAMPLES = 25
"""Five in each fifth: the median of fewer says nothing about a change of 5 %."""
STANDARD_ERRORS = 3.0
"""A change must also exceed so many standard errors of the two medians."""
MEDIAN_ERROR = 1.2533 * 1.4826
"""Standard error of a median from the median absolute deviation, for normal noise, times sqrt(n)."""


class LatencyChange(Model):
    """Over the timed inferences of a block."""

    first_ms: float
    """Median of the first fifth."""
    last_ms: float
    """Median of the last fifth."""
    error_ms: float
    """Standard error of their difference."""

    @property
    def share(self) -> float:
        return self.last_ms / self.first_ms - 1

    @property
    def significant(self) -> bool:
        """More than 5 %, and more than the scatter explains."""
        return abs(self.share) > CHANGE and abs(self.last_ms - self.first_ms) > STANDARD_ERRORS * self.error_ms

    @property
    def throttled(self) -> bool:
        return self.significant and self.share > 0


def latency_change(record: Record) -> LatencyChange | None:
    """None with fewer than `FEWEST_SAMPLES` timed inferences."""
    timed = [sample.duration_ns / 1e6 for sample in record.samples if sample.phase == "timed"]
    if len(timed) < FEWEST_SAMPLES:
        return None
    fifth = len(timed) // 5
    first, last = timed[:fifth], timed[-fifth:]
    error = math.hypot(_median_error(first), _median_error(last))
    return LatencyChange(first_ms=median(first), last_ms=median(last), error_ms=error)


def find_clock_cap(record: Record, readings: Sequence[Power]) -> Iterator[Invalidity]:
    """Until the end of the load: caps that rise again while the phone cools down do no harm."""
    load = phase_window(record, "load")
    for before, after in pairwise(p for p in readings if load and p.t_ns * NS <= load.end_s):
        if change := _cap_change(before, after):
            detail = f"{change} at {since_start_s(record, after):.1f} s of the block"
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


def find_latency_change(record: Record) -> Iterator[Invalidity]:
    """Slower at the end: throttled. Faster at the end is a matter of the warm-up, which the doubt `drift` tells."""
    change = latency_change(record)
    if change and change.throttled:
        detail = f"last fifth {change.last_ms:.2f} ms, first {change.first_ms:.2f} ms: {change.share:+.1%}"
        yield Invalidity(code=InvalidCode.THROTTLED, detail=detail)


def _median_error(values: list[float]) -> float:
    middle = median(values)
    return MEDIAN_ERROR * median(abs(value - middle) for value in values) / math.sqrt(len(values))
