"""Latency of a cell: the timed samples of its blocks. Source of the unit: a block is one fresh agent process."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np
from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.record import Record

from .intervals import Interval, bootstrap_median, mad

NS_PER_MS = 1e6


class Latency(Model):
    """Of the timed samples of the blocks that went well, in ms."""

    blocks: int = Field(ge=1)
    samples: int = Field(ge=1)
    median_ms: float
    """Median over blocks of the blocks' medians."""
    interval_ms: Interval | None
    """95 % interval of the median, over blocks; None with fewer than three."""
    mad_ms: float
    """Median absolute deviation of all samples from their median."""
    min_ms: float
    p90_ms: float
    p99_ms: float


def timed_ms(record: Record) -> list[float]:
    """Durations of a block's timed samples: latencies, except those of a stream (`is_stream`)."""
    return [sample.duration_ns / NS_PER_MS for sample in record.samples if sample.phase == "timed"]


def latency(blocks: Sequence[Sequence[float]], seed: int = 1) -> Latency | None:
    """Statistics of blocks of timed samples in ms; None where there is no sample."""
    filled = [list(block) for block in blocks if block]
    if not filled:
        return None
    samples = sorted(sample for block in filled for sample in block)
    medians = sorted(median(block) for block in filled)
    p90_ms, p99_ms = np.percentile(samples, (90, 99)).tolist()
    return Latency(
        blocks=len(filled),
        samples=len(samples),
        median_ms=median(medians),
        interval_ms=bootstrap_median(medians, seed),
        mad_ms=mad(samples),
        min_ms=samples[0],
        p90_ms=p90_ms,
        p99_ms=p99_ms,
    )
