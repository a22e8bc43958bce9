"""Latency of a cell: the figures of its blocks. Source of the unit: a block is one fresh agent process."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pydantic import Field

from orchestrator.figures import Times
from orchestrator.model.base import Model

from .intervals import Interval
from .resolution import Unresolved, median_of


class Latency(Model):
    """The latency of blocks that went well, ms; each has the same weight, however many samples it has."""

    blocks: int = Field(ge=1)
    samples: int = Field(ge=1)
    median_ms: float | None
    """Median over blocks of the blocks' medians; None where it is not resolved."""
    interval_ms: Interval | None
    """The interval of the median, over blocks; None with fewer than three, and where the median is not told."""
    unresolved: Unresolved | None = None
    mad_ms: float
    """Median over blocks of the median absolute deviation of a block's samples from their median."""
    min_ms: float
    """The least of all samples."""
    p90_ms: float | None
    """Median over blocks of the blocks' 90th percentiles; None where the median, or one of them, is not told."""
    p99_ms: float | None


def latency(blocks: Sequence[Times], *, watched: bool = False) -> Latency | None:
    """Statistics of the times of blocks; None of none."""
    if not blocks:
        return None
    middle, interval, why_not = median_of([block.median_ms for block in blocks], watched=watched)
    return Latency(
        blocks=len(blocks),
        samples=sum(block.count for block in blocks),
        median_ms=middle,
        interval_ms=interval,
        unresolved=why_not,
        mad_ms=median(block.mad_ms for block in blocks),
        min_ms=min(block.min_ms for block in blocks),
        p90_ms=None if why_not else _median([block.p90_ms for block in blocks]),
        p99_ms=None if why_not else _median([block.p99_ms for block in blocks]),
    )


def _median(values: Sequence[float | None]) -> float | None:
    """Return the median of what all blocks tell."""
    told = [value for value in values if value is not None]
    return median(told) if len(told) == len(values) else None
