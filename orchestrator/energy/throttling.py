"""Detect that clocks fell or inferences became slower during a block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from orchestrator.model.base import Model
from orchestrator.model.event import Power
from orchestrator.model.record import InvalidCode, Invalidity, Record

from .gauge_readings import NS
from .rise import evidence_of_rise
from .windows import phase_window, since_start_s

CHANGE = 0.05
"""Last fifth's median latency against the first fifth's: measurement protocol, step 9."""
FEWEST_SAMPLES = 50
"""Ten in each fifth: fewer cannot tell a change from chance as surely as a run of twenty blocks needs it."""
SPIKE = 8.0
"""Median absolute deviations."""


class LatencyChange(Model):
    """The change of the latency over the timed inferences of a block."""

    first_ms: float
    """Median of the first fifth."""
    last_ms: float
    """Median of the last fifth."""
    evidence: float
    """The evidence that latencies rise, by what chance hardly exceeds."""

    @property
    def share(self) -> float:
        return self.last_ms / self.first_ms - 1

    @property
    def throttled(self) -> bool:
        """More than 5 % slower, and more than inferences that resemble the one before wander."""
        return self.share > CHANGE and self.evidence > 1


def latency_change(record: Record) -> LatencyChange | None:
    """None with fewer than `FEWEST_SAMPLES` timed inferences."""
    return change_of([sample.duration_ns / 1e6 for sample in record.samples if sample.phase == "timed"])


def change_of(timed_ms: Sequence[float]) -> LatencyChange | None:
    """The same of bare times, in order."""
    if len(timed_ms) < FEWEST_SAMPLES:
        return None
    fifth = len(timed_ms) // 5
    first, last = timed_ms[:fifth], timed_ms[-fifth:]
    evidence = evidence_of_rise(_without_spikes(np.log(timed_ms)))
    return LatencyChange(first_ms=median(first), last_ms=median(last), evidence=evidence)


def find_clock_cap(record: Record, readings: Sequence[Power]) -> Iterator[Invalidity]:
    """Yield the first change of a cap until the end of the load: caps that rise while the phone cools down do no
    harm."""
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


def _without_spikes(values: np.ndarray) -> np.ndarray:
    """Values that are far from the median are drawn near, so that one hides no change."""
    middle = np.median(values)
    reach = SPIKE * float(np.median(np.abs(values - middle)))
    return np.clip(values, middle - reach, middle + reach) if reach else values
