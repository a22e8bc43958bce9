"""Throughput of a cell: frames per second of its streams, or of inferences that take several frames together.

It is no latency, nor the inverse of one: the frames of a stream overlap, and those of a batch wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from orchestrator.figures import BlockFigures
from orchestrator.figures.one_block import frames_per_s
from orchestrator.model.base import Model
from orchestrator.model.job import Cell

from .intervals import Interval
from .resolution import Unresolved, median_of


class Throughput(Model):
    """The throughput of the timed samples of the blocks that went well."""

    blocks: int = Field(ge=1)
    samples: int = Field(ge=1)
    frames: int = Field(ge=1)
    """The frames of one sample."""
    batch: int = Field(ge=1)
    """Frames that one inference takes together."""
    frames_per_s: float | None
    """Median over blocks of `frames_per_s`; None where it is not resolved."""
    interval_per_s: Interval | None
    """The interval of the median, over blocks; None with fewer than three, and where the median is not told."""
    unresolved: Unresolved | None = None
    slowest_per_s: float
    """The slowest of all samples."""
    over_one_thread: float | None = None
    """Ratio to one CPU thread of the same device, where that was measured too."""
    over_one_thread_interval: Interval | None = None
    """The interval of `farm compare`."""
    over_one_thread_unresolved: Unresolved | None = None
    """The reason why that ratio, measured, is not told."""

    @property
    def ms_per_frame(self) -> float | None:
        """Time of a sample, shared out over its frames."""
        return 1000 / self.frames_per_s if self.frames_per_s else None


def throughput(blocks: Sequence[BlockFigures], cell: Cell, *, watched: bool = False) -> Throughput | None:
    """Return the throughput of a cell's good blocks; None where each sample is one inference of one frame, or none."""
    known = [(block.rate, rate) for block in blocks if block.rate is not None and (rate := frames_per_s(block))]
    found, rates = [of for of, _ in known], [rate for _, rate in known]
    frames = max((of.frames for of in found), default=1)
    if frames == 1:
        return None
    middle, interval, why_not = median_of(rates, watched=watched)
    return Throughput(
        blocks=len(found),
        samples=sum(of.samples for of in found),
        frames=frames,
        batch=cell.batch or 1,
        frames_per_s=middle,
        interval_per_s=interval,
        unresolved=why_not,
        slowest_per_s=min(of.slowest_per_s for of in found),
    )
