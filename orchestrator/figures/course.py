"""Reduce a sustained load to a curve of a few points."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from orchestrator.model.event import Sample

from .block import Course
from .times import NS_PER_MS

BINS = 30
FIRST_S = 60.0
"""The reference speed is that of the first minute (of the first fifth of a shorter load)."""
LAST_SHARE = 0.1
"""The end is the last tenth."""


def course_of(timed: Sequence[Sample]) -> Course | None:
    """Return the course of timed samples in order; None where they are too few, or too short, to speak of a load."""
    if len(timed) < 2:
        return None
    start = timed[0].start_ns
    curve = [((s.start_ns + s.duration_ns - start) / 1e9, s.duration_ns / NS_PER_MS) for s in timed]
    load_s = curve[-1][0]
    if load_s <= 0:
        return None
    return Course(
        load_s=load_s,
        bins_ms=tuple(_median_ms(curve, load_s * i / BINS, load_s * (i + 1) / BINS) for i in range(BINS)),
        first_ms=_median_ms(curve, 0.0, min(FIRST_S, load_s / 5)),
        last_ms=_median_ms(curve, load_s * (1 - LAST_SHARE), load_s),
    )


def _median_ms(curve: Sequence[tuple[float, float]], start_s: float, end_s: float) -> float | None:
    """Return the median of the samples that ended in a stretch of time."""
    inside = [ms for t, ms in curve if start_s < t <= end_s]
    return median(inside) if inside else None
