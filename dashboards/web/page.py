"""A page: what it is made of, and what its makers are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orchestrator.answers import Ending
from orchestrator.ledger import ExperimentRow, Ledger

from .access import Session
from .charts import Prometheus
from .look import Look
from .own_figures import OwnFigures

if TYPE_CHECKING:
    from orchestrator.analysis.ranking import Ranked
    from orchestrator.report.content import Content


@dataclass(frozen=True)
class Asked:
    """The material of a page."""

    look: Callable[[], Look]
    ledger: Callable[[], Ledger]
    """Raises FarmError where it is away."""
    ends: Callable[[str], Ending]
    """A function for the end of an experiment, as it was last thought."""
    content: Callable[[ExperimentRow], Content]
    """Contents of results."""
    ranked: Callable[[], list[Ranked]]
    """The rows that experiments add to the ranking."""
    session: Session | None
    figures: Prometheus | OwnFigures
    """Source of the charts."""
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """A whole number of the query; 0 where there is none."""
        text = self.query.get(name, "")
        return min(int(text), 10**9) if text.isdecimal() and text.isascii() else 0


@dataclass(frozen=True)
class Page:
    """The content of a page."""

    template: str
    title: str
    room: str
    """The room that is marked in the head."""
    data: Mapping[str, Any]
    live: bool = True
    """It may change while somebody looks."""


Make = Callable[[Asked], Page]


@dataclass(frozen=True)
class Pager:
    """The cut of a list."""

    first: int
    total: int
    most: int
    query: str = ""
    """The rest of the address, with `&` behind it."""

    @property
    def last(self) -> int:
        return min(self.first + self.most, self.total)

    @property
    def before(self) -> int | None:
        return max(0, self.first - self.most) if self.first else None

    @property
    def after(self) -> int | None:
        return self.first + self.most if self.first + self.most < self.total else None
