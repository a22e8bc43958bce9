"""`Compared`: what a comparison says of one metric of one cell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from orchestrator.analysis.statistics import Interval, Unresolved
from orchestrator.model.axes import ENGINE
from orchestrator.model.base import STRICT
from orchestrator.model.device import OURS, Source

from .ratio import Method
from .verdict import Verdict


@dataclass(slots=True, kw_only=True)
class Compared:
    """One metric of one cell on one device. `compare` fills it in, and it stays so; no model, because a table has tens
    of thousands. Those that a model holds are checked like one."""

    __pydantic_config__ = STRICT

    device: str
    """Serial; model where cells are matched by model."""
    source: str
    network: str
    backend: str
    precision: str
    options: dict[str, str]
    metric: str
    basis: str = ""
    """The figure of the metric: source and scope of an energy, kind of memory, of set-up."""
    unit: str
    a: float | None = None
    """Median of the blocks, as in a table of results; share of an accuracy. None where results do not tell it."""
    b: float | None = None
    unresolved_a: Unresolved | None = None
    """The reason why A has no figure although it was measured."""
    unresolved_b: Unresolved | None = None
    ratio: float | None = None
    """B over A: the quotient of these two; None where one of them, or itself, is not told."""
    interval: Interval | None = None
    """95 % interval of the ratio, of this row alone: it holds the quotient of medians, and verdicts follow from it."""
    unresolved: Unresolved | None = None
    """The reason why there is no ratio and no interval although both sides were measured: it would say nothing."""
    margin: float
    verdict: Verdict
    worse: bool | None = None
    """True if B is the worse one, of a difference."""
    missing_on: str = ""
    """`A` or `B`: the side that lacks it; `both`."""
    expected: bool = True
    """True if a missing row should have been measured: not what was excluded beforehand, or both lack."""
    p: float | None = None
    adjusted_p: float | None = None
    """The p-value adjusted by Holm over all rows of the table."""
    needs_blocks: int | None = None
    """Blocks more on each side that would settle it; None where it is settled, or no number of blocks would."""
    needs_nights: int | None = None
    """The same in nights, where these are what counts."""
    method: Method | None = None
    blocks: tuple[int, int] = (0, 0)
    nights: tuple[int, int] = (0, 0)
    reason: str = ""
    """The reason why it is unknown or missing."""
    differs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Provenance that the sides do not have in common: of A, of B."""

    @property
    def at_least(self) -> float | None:
        """The ratio; where that is not told, the end of its interval that is nearer to one."""
        if self.ratio is not None or self.interval is None:
            return self.ratio
        return max(self.interval.low, min(1.0, self.interval.high))


def with_engines(rows: Iterable[Compared]) -> tuple[Compared, ...]:
    """Return the same rows; beside other engines those of our own name it too, among their options."""
    found = tuple(rows)
    if all(ENGINE.name not in row.options for row in found):
        return found
    return tuple(
        row
        if row.source == Source.IMPORT
        else replace(row, options=dict(sorted({ENGINE.name: OURS.name, **row.options}.items())))
        for row in found
    )
