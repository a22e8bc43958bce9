"""Throughput of a cell: frames per second of its streams, or of inferences that take several frames together.

It is no latency, nor the inverse of one: the frames of a stream overlap, and those of a batch wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pydantic import Field

from orchestrator.model.base import Model
from orchestrator.model.job import Cell
from orchestrator.model.record import Record

from .intervals import Interval, bootstrap_median


class Throughput(Model):
    """Of the timed samples of the blocks that went well."""

    blocks: int = Field(ge=1)
    samples: int = Field(ge=1)
    frames: int = Field(ge=1)
    """Of one sample."""
    batch: int = Field(ge=1)
    """Frames that one inference takes together."""
    frames_per_s: float
    """Median over blocks of the blocks' medians."""
    interval_per_s: Interval | None
    """95 % interval of the median, over blocks; None with fewer than three."""
    slowest_per_s: float
    """Of all samples."""
    over_one_thread: float | None = None
    """Frames per second over those of one CPU thread of the same device, where that was measured too."""

    @property
    def ms_per_frame(self) -> float:
        """Time of a sample, shared out over its frames."""
        return 1000 / self.frames_per_s


def is_stream(record: Record) -> bool:
    """Whether its samples have several inferences, so that their times are no latencies."""
    return any(sample.inferences > 1 for sample in record.samples)


def frames_per_s(record: Record, batch: int) -> list[float]:
    """Of each timed sample."""
    timed = [sample for sample in record.samples if sample.phase == "timed" and sample.duration_ns > 0]
    return [sample.inferences * batch * 1e9 / sample.duration_ns for sample in timed]


def throughput(records: Sequence[Record], cell: Cell, seed: int = 1) -> Throughput | None:
    """Of good blocks of one cell; None where each sample is one inference of one frame, or there is none."""
    batch = cell.batch or 1
    blocks = [found for record in records if (found := frames_per_s(record, batch))]
    frames = max((s.inferences * batch for r in records for s in r.samples if s.phase == "timed"), default=1)
    if not blocks or frames == 1:
        return None
    medians = sorted(median(block) for block in blocks)
    return Throughput(
        blocks=len(blocks),
        samples=sum(len(block) for block in blocks),
        frames=frames,
        batch=batch,
        frames_per_s=median(medians),
        interval_per_s=bootstrap_median(medians, seed),
        slowest_per_s=min(min(block) for block in blocks),
    )
