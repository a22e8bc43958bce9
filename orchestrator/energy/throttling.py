"""Whether inferences became slower or faster during the load."""

from __future__ import annotations

import math
from statistics import median

from orchestrator.model.base import Model
from orchestrator.model.record import Record

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


def _median_error(values: list[float]) -> float:
    middle = median(values)
    return MEDIAN_ERROR * median(abs(value - middle) for value in values) / math.sqrt(len(values))
