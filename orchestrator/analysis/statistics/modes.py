"""Summaries of the three modes of a block: cold start, steady state, sustained load."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal

from orchestrator.figures import BlockFigures
from orchestrator.figures.one_block import first_result_ms, total_setup_ms
from orchestrator.model.base import Model

from .intervals import Interval
from .resolution import Unresolved, median_of

Mode = Literal["steady", "cold", "sustained"]


class ColdStart(Model):
    """The time from the start of a fresh process to its first result, medians over blocks, ms."""

    blocks: int
    total_ms: float | None
    """None where it is not resolved."""
    interval_ms: Interval | None
    unresolved: Unresolved | None = None
    setup_ms: float
    first_ms: float


class ThrottleBin(Model):
    """One stretch of time of a sustained load."""

    start_s: float
    end_s: float
    """The time since the load began."""
    median_ms: float
    """Median over blocks of the median latency in it."""
    low_ms: float
    high_ms: float
    """Least and largest of the blocks."""


class Throttling(Model):
    """The speed under load, and how it held up."""

    blocks: int
    load_s: float
    """The shortest of the blocks' loads: as long as the curve. Each block's own load has as many equal parts."""
    bins: tuple[ThrottleBin, ...]
    first_ms: float
    """Median latency of the first minute."""
    last_ms: float
    """Median latency of the last tenth."""
    speed_left: float
    """Share of the first minute's speed that is left at the end: 1 is no throttling."""


def block_value_ms(block: BlockFigures, mode: Mode) -> float | None:
    """The one figure of a block in its mode: median latency, or the time to the first result. None without samples."""
    if block.times is None:
        return None
    return first_result_ms(block) if mode == "cold" else block.times.median_ms


def cold_start(blocks: Sequence[BlockFigures], *, watched: bool = False) -> ColdStart | None:
    """Summarise blocks in mode `cold`; None where none has a sample."""
    found = [block for block in blocks if block.times]
    if not found:
        return None
    middle, interval, why_not = median_of([first_result_ms(block) for block in found], watched=watched)
    return ColdStart(
        blocks=len(found),
        total_ms=middle,
        interval_ms=interval,
        unresolved=why_not,
        setup_ms=median(map(total_setup_ms, found)),
        first_ms=median(block.first_timed_ms for block in found),
    )


def throttling(blocks: Sequence[BlockFigures]) -> Throttling | None:
    """Summarise blocks in mode `sustained`; None where none has a load long enough to speak of."""
    curves = [block.course for block in blocks if block.course is not None]
    first = [curve.first_ms for curve in curves if curve.first_ms is not None]
    last = [curve.last_ms for curve in curves if curve.last_ms is not None]
    if not first or not last:
        return None
    load_s = min(curve.load_s for curve in curves)
    count = max(len(curve.bins_ms) for curve in curves)
    bins = [[ms for curve in curves if (ms := curve.bins_ms[i]) is not None] for i in range(count)]
    return Throttling(
        blocks=len(curves),
        load_s=load_s,
        bins=tuple(
            ThrottleBin(
                start_s=load_s * i / count,
                end_s=load_s * (i + 1) / count,
                median_ms=median(values),
                low_ms=min(values),
                high_ms=max(values),
            )
            for i, values in enumerate(bins)
            if values
        ),
        first_ms=median(first),
        last_ms=median(last),
        speed_left=median(first) / median(last),
    )
