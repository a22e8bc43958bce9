"""A page: what it is made of, and what its makers are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from orchestrator.answers import Ending
from orchestrator.ledger import ExperimentRow, Ledger
from orchestrator.model.errors import UnknownName
from orchestrator.model.people import Role
from orchestrator.model.rights import Place, Right

from .access import Visitor
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
    state: Path
    """The farm's folder."""
    ends: Callable[[str], Ending]
    """A function for the end of an experiment, as it was last thought."""
    content: Callable[[ExperimentRow], Content]
    """Contents of results."""
    ranked: Callable[[], list[Ranked]]
    """The rows that experiments add to the ranking."""
    visitor: Visitor
    figures: Prometheus | OwnFigures
    """Source of the charts."""
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def projects(self) -> frozenset[str] | None:
        """Return the projects that who looks may view; None: all."""
        return self.visitor.grants.visible

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
Of = Callable[[Ledger, Mapping[str, str]], Iterable[Place]]
"""Tells what an address is about. Raises UnknownName."""
SEES, SEES_ANYTHING = Right(Role.VIEW), Right(Role.VIEW, of="any")
SEES_THE_FARM, ADMINISTERS = Right(Role.VIEW, of="farm"), Right(Role.ADMINISTER, of="farm")


M = TypeVar("M")


@dataclass(frozen=True)
class Way(Generic[M]):
    """An address that is looked at, with the right that it takes."""

    make: M
    needs: Right = SEES_ANYTHING
    of: Of | None = None
    """A function for what it is about, where its right is of a project."""

    def let(self, visitor: Visitor, ledger: Callable[[], Ledger], path: Mapping[str, str]) -> list[Place]:
        """Return what the address is about; nothing for whoever may do all: nobody asks then. Raises NotAllowed,
        UnknownName where it is not theirs to see."""
        places = list(self.of(ledger(), path)) if self.of is not None and not visitor.grants.are_whole else []
        self.needs.let(visitor.name, visitor.grants, places, path.get("id", ""))
        return places


def of_job(ledger: Ledger, path: Mapping[str, str]) -> list[Place]:
    """Return the place of the job that an address names. Raises UnknownName."""
    return [ledger.place_of(path["id"])]


def of_experiment(ledger: Ledger, path: Mapping[str, str]) -> list[Place]:
    """Return the place of the experiment that an address names. Raises UnknownName."""
    row = found_experiment(ledger, path["id"])
    return [Place(row.project, row.submitter)]


def found_experiment(ledger: Ledger, name: str) -> ExperimentRow:
    """Return an experiment by its id, or the newest of a name. Raises UnknownName."""
    try:
        return ledger.experiment(name)
    except UnknownName:
        ids = [each for each, own in ledger.experiment_names().items() if own == name]
        if not ids:
            raise
        return ledger.experiment(ids[-1])


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
