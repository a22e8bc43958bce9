"""Summaries of the three modes of a block: cold start, steady state, sustained load."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal

from orchestrator.model.base import Model
from orchestrator.model.record import Record

from .intervals import Interval, bootstrap_median
from .samples import NS_PER_MS, timed_ms
from .setup import first_result_ms, total_setup_ms

Mode = Literal["steady", "cold", "sustained"]

BINS = 30
FIRST_S = 60.0
"""The reference speed of a sustained load is that of its first minute (of its first fifth, where it is shorter)."""
LAST_SHARE = 0.1
"""Its end is the last tenth."""


class ColdStart(Model):
    """From the start of a fresh process to its first result, medians over blocks, ms."""

    blocks: int
    total_ms: float
    interval_ms: Interval | None
    setup_ms: float
    first_ms: float


class ThrottleBin(Model):
    """One stretch of time of a sustained load."""

    start_s: float
    end_s: float
    """Since the load began."""
    median_ms: float
    """Median over blocks of the median latency in it."""
    low_ms: float
    high_ms: float
    """Least and largest of the blocks."""


class Throttling(Model):
    """How the speed held up under load."""

    blocks: int
    load_s: float
    """The shortest of the blocks' loads: as long as the curve."""
    bins: tuple[ThrottleBin, ...]
    first_ms: float
    """Median latency of the first minute."""
    last_ms: float
    """Median latency of the last tenth."""
    speed_left: float
    """Share of the first minute's speed that is left at the end: 1 is no throttling."""


def block_value_ms(record: Record, mode: Mode) -> float | None:
    """The one figure of a block in its mode: median latency, or the time to the first result. None without samples."""
    timed = timed_ms(record)
    if not timed:
        return None
    return first_result_ms(record) if mode == "cold" else median(timed)


def cold_start(records: Sequence[Record], seed: int = 1) -> ColdStart | None:
    """Of blocks in mode `cold`; None where none has a sample."""
    found = [record for record in records if timed_ms(record)]
    if not found:
        return None
    totals = [first_result_ms(record) for record in found]
    return ColdStart(
        blocks=len(found),
        total_ms=median(totals),
        interval_ms=bootstrap_median(totals, seed),
        setup_ms=median(map(total_setup_ms, found)),
        first_ms=median(timed_ms(record)[0] for record in found),
    )


def throttling(records: Sequence[Record]) -> Throttling | None:
    """Of blocks in mode `sustained`; None where none has a load long enough to speak of."""
    curves = [curve for record in records if len(curve := _curve(record)) >= 2]
    if not curves:
        return None
    load_s = min(curve[-1][0] for curve in curves)
    if load_s <= 0:
        return None
    bins = tuple(found for i in range(BINS) if (found := _bin(curves, load_s * i / BINS, load_s * (i + 1) / BINS)))
    until = min(FIRST_S, load_s / 5)
    first = _over_blocks(curves, 0.0, until)
    last = _over_blocks(curves, load_s * (1 - LAST_SHARE), load_s)
    if not first or not last:
        return None
    return Throttling(
        blocks=len(curves),
        load_s=load_s,
        bins=bins,
        first_ms=median(first),
        last_ms=median(last),
        speed_left=median(first) / median(last),
    )


def _curve(record: Record) -> list[tuple[float, float]]:
    """(seconds since the load began, latency in ms) of each timed sample, at its end."""
    timed = [sample for sample in record.samples if sample.phase == "timed"]
    if not timed:
        return []
    start = timed[0].start_ns
    return [((s.start_ns + s.duration_ns - start) / 1e9, s.duration_ns / NS_PER_MS) for s in timed]


def _bin(curves: Sequence[Sequence[tuple[float, float]]], start_s: float, end_s: float) -> ThrottleBin | None:
    values = _over_blocks(curves, start_s, end_s)
    if not values:
        return None
    return ThrottleBin(start_s=start_s, end_s=end_s, median_ms=median(values), low_ms=min(values), high_ms=max(values))


def _over_blocks(curves: Sequence[Sequence[tuple[float, float]]], start_s: float, end_s: float) -> list[float]:
    """Each block's median latency in a stretch of time, of the blocks that have a sample in it."""
    inside = [[ms for t, ms in curve if start_s < t <= end_s] for curve in curves]
    return [median(values) for values in inside if values]
