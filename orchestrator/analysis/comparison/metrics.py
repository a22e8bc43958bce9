"""The metrics that are compared: which direction is better, which difference matters, how much nights differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.figures import QUANTITIES

FAMILY_LEVEL = 0.004
"""About this share of tables without any difference says `different` of a row where blocks are independent, 0.5 % with
trimmed pairs; at most 1 % does where neighbours are alike (docs/howto/comparing.md)."""
MIN_BLOCKS = 5
"""The fewest blocks a side (rounds, where sides are paired) for a verdict."""


class Metric(NamedTuple):
    """One quantity of a block."""

    margin: float
    """Sides that differ by less are the same: a share."""
    between: float
    """Standard deviation, a share, that one phone is assumed to have between nights, for sides with too few nights
    to measure it."""
    unit: str
    more_is_worse: bool = True


METRICS: dict[str, Metric] = {
    name: Metric(of.margin, of.between, of.unit, of.more_is_worse)
    for name, of in QUANTITIES.items()
    if of.margin is not None
} | {"accuracy": Metric(0.01, 0.0, "share", more_is_worse=False)}


@dataclass(frozen=True)
class Rules:
    """The rules by which something counts as a difference."""

    margins: Mapping[str, float] = field(default_factory=dict)
    """Margins by metric, instead of its own."""
    between: Mapping[str, float] = field(default_factory=dict)
    """Deviations between nights by metric, instead of its own."""
    level: float = FAMILY_LEVEL

    def margin(self, metric: str) -> float:
        return self.margins.get(metric, METRICS[metric].margin)

    def between_nights(self, metric: str) -> float:
        return self.between.get(metric, METRICS[metric].between)
