"""Take one figure of the blocks of each cell, and the ratio of two cells by the estimators of `farm compare`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from orchestrator.analysis.statistics import Interval, Unresolved, newest_attempts
from orchestrator.figures import BlockFigures
from orchestrator.model.device import Source
from orchestrator.model.record import Outcome

from .metrics import METRICS
from .ratio import Block, estimate, rounding_of
from .rows import nights_of
from .verdict import interval_of, why_untold

Place = tuple[str, Source, str]
"""Serial, source, cell."""


def blocks_by_cell(
    blocks: Iterable[BlockFigures], value: Callable[[BlockFigures], float | None]
) -> Mapping[Place, Sequence[Block]]:
    """Return the blocks of each cell: each job's newest attempt, where it went well and has this figure."""
    work = [block for block in newest_attempts(blocks) if block.role == "work"]
    ordered = sorted(work, key=lambda block: (block.experiment_id, block.serial, block.started_at, block.token))
    found: dict[Place, list[Block]] = {}
    for block, night in zip(ordered, nights_of(ordered), strict=True):
        if block.outcome is Outcome.OK and (own := value(block)) is not None:
            place = (block.serial, block.source, block.cell_id)
            whole_ms = block.times is not None and block.times.whole
            found.setdefault(place, []).append(Block(night, block.block, block.started_at, own, whole_ms))
    return found


class Ratio(NamedTuple):
    """The quotient of the medians of two cells' blocks."""

    point: float | None
    """None where it would say nothing."""
    interval: Interval | None
    """95 %: it holds the point; None of fewer than two blocks of either, and without a point."""
    unresolved: Unresolved | None = None
    """The reason why it has no point."""

    @property
    def proves_more(self) -> bool:
        """True if the ratio is above one beyond doubt."""
        return self.interval is not None and self.interval.low > 1


def quotient(a: Sequence[Block], b: Sequence[Block], metric: str) -> Ratio | None:
    """The figure of `b` over that of `a`; None where it has no sense."""
    if not a or not b or min(block.value for block in (*a, *b)) <= 0:
        return None
    found = estimate(a, b, METRICS[metric].between, rounding_of(a, b) if metric == "latency" else 0.0)
    if found and (why_not := why_untold(found)[0]):
        return Ratio(None, None, why_not)
    point = median(block.value for block in b) / median(block.value for block in a)
    return Ratio(point, interval_of(found) if found else None)
