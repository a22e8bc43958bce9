"""Summaries of the three modes of a block: cold start, steady state, sustained load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    power_w: float | None = None
    """Median over blocks of the mean power in it; None where no source told it, as the two below."""
    temp_c: float | None = None
    clock_hz: float | None = None


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
    plateau_ms: float | None
    """The time of a unit at the median speed of the first plateaus; None where units are too few to tell one."""
    speed_left: float | None
    """Median speed of the last third over the median speed of the plateaus, which stand beside it; None as that."""
    told: int = 0
    """Blocks that tell a plateau."""
    throttled: int = 0
    """Blocks whose speed left it."""
    plateau_end_s: float | None = None
    """Median time of that; None where a block kept its speed."""


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
    told = [curve.plateau for curve in curves if curve.plateau]
    plateau_per_s = median(each.per_s for each in told) if told else None
    ends_s = [each.end_s for each in told if each.end_s is not None]
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
                power_w=_middle(curve.power_w[i : i + 1] for curve in curves),
                temp_c=_middle(curve.temp_c[i : i + 1] for curve in curves),
                clock_hz=_middle(curve.clock_hz[i : i + 1] for curve in curves),
            )
            for i, values in enumerate(bins)
            if values
        ),
        first_ms=median(first),
        last_ms=median(last),
        plateau_ms=1e3 / plateau_per_s if plateau_per_s else None,
        speed_left=median(each.sustained_per_s for each in told) / plateau_per_s if plateau_per_s else None,
        told=len(told),
        throttled=len(ends_s),
        plateau_end_s=median(ends_s) if len(ends_s) == len(curves) else None,
    )


def _middle(told: Iterable[tuple[float | None, ...]]) -> float | None:
    """Return the median of what blocks told of one stretch; None where none told anything."""
    found = [value for values in told for value in values if value is not None]
    return median(found) if found else None
