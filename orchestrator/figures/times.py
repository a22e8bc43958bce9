"""Reduce the times of a block to a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from statistics import fmean, median
from typing import Any

from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.record import Record

NS_PER_MS, NS_PER_S = 1e6, 1e9
QUANTILES = 32
"""The most times that stand for a block's: blocks with as many samples or fewer lose nothing but the order."""
FEWEST_OF_FIFTHS = 10
"""The times below which fifths of them tell nothing of a change within the block."""


class Mean(Model):
    """The mean of some times, with what an interval of it needs."""

    count: int = Field(ge=1)
    mean_ms: float
    variance: float | None = None
    """The variance in ms squared; None of one time."""
    whole: bool = False
    """True if all are whole milliseconds, so that they were rounded."""


class Times(Mean):
    """The times of a block's timed samples, ms: latencies, except those of a stream."""

    median_ms: float
    min_ms: float
    p90_ms: float | None
    """None of means over several inferences, as the 99th: they hide how single ones differ."""
    p99_ms: float | None
    mad_ms: float
    """Median absolute deviation from the median."""
    quantiles_ms: tuple[float, ...]
    """All times in ascending order; of more than `QUANTILES` so many, each for an equal share of them."""
    fifths_ms: tuple[float, float] | None = None
    """Medians of the first and of the last fifth, in order of time; None of fewer than ten times."""


def timed_ms(record: Record) -> list[float]:
    """Durations of a block's timed samples; of a training epochs of its last stage. None where one took no time: it was
    told by too coarse a clock."""
    last = record.samples[-1].stage if record.samples else ""
    timed = (sample for sample in record.samples if sample.phase == "timed" and sample.stage == last)
    found = [sample.duration_ns / NS_PER_MS for sample in timed]
    return found if all(found) else []


def mean_of(times_ms: Sequence[float]) -> Mean:
    """Return the mean of one time or more."""
    return Mean(**_mean(times_ms))


def _mean(times_ms: Sequence[float]) -> dict[str, Any]:
    mean_ms, others = fmean(times_ms), len(times_ms) - 1
    return {
        "count": len(times_ms),
        "mean_ms": mean_ms,
        "variance": fsum((time - mean_ms) ** 2 for time in times_ms) / others if others else None,
        "whole": all(time == int(time) for time in times_ms),
    }


def times_of(times_ms: Sequence[float], *, means: bool = False) -> Times | None:
    """Return the figures of a block's times in their order; None of none. `means`: each is over several inferences."""
    if not times_ms:
        return None
    ordered = sorted(times_ms)
    middle = median(ordered)
    return Times(
        **_mean(times_ms),
        median_ms=middle,
        min_ms=ordered[0],
        p90_ms=None if means else percentile(ordered, 90),
        p99_ms=None if means else percentile(ordered, 99),
        mad_ms=median(abs(time - middle) for time in ordered),
        quantiles_ms=_quantiles(ordered),
        fifths_ms=_fifths(times_ms),
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile of ascending values, linear between the two next to it: what NumPy says, to the last bit,
    in a tenth of the time where there are few."""
    place = (len(ordered) - 1) * (percent / 100)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    share, step = place - below, ordered[above] - ordered[below]
    return ordered[above] - step * (1 - share) if share >= 0.5 else ordered[below] + step * share


def _quantiles(ordered: Sequence[float]) -> tuple[float, ...]:
    count = min(len(ordered), QUANTILES)
    return tuple(ordered[(2 * i + 1) * len(ordered) // (2 * count)] for i in range(count))


def _fifths(times_ms: Sequence[float]) -> tuple[float, float] | None:
    fifth = len(times_ms) // 5
    if len(times_ms) < FEWEST_OF_FIFTHS:
        return None
    return median(times_ms[:fifth]), median(times_ms[-fifth:])
