"""Acts on projects: add them, with their shares and limits, and what a submission to one may be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.acts.act import Acting, Done, Settled, act, on_pages
from orchestrator.ledger import Ledger
from orchestrator.model.errors import SpecError, UnknownName
from orchestrator.model.people import COMMON, Role
from orchestrator.model.quantity import counted
from orchestrator.model.rights import USUAL, Right, Terms

ADMINISTERS = Right(Role.ADMINISTER, of="farm")
SHARES = (0.01, 100.0)
MOST = 1e9
Figure = float
"""A number of a form, where a bare one is a moment."""
NAME = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,59}"
"""The names of people and projects."""


@dataclass(frozen=True)
class Opened(Done):
    project: str
    terms: Terms

    @property
    def lines(self) -> list[str]:
        return [f"{self.project} is a project of this farm with {self.terms.text}"]


@on_pages
@act(ADMINISTERS)
def add_project(
    acting: Acting, name: str, note: str = "", share: Figure | None = None, phone_hours: Figure | None = None,
    most_waiting: int | None = None, storage_gib: Figure | None = None,
) -> Opened:  # fmt: skip
    """Add a project with a share of the farm beside others' (None: 1), and limits: phone-hours a week, jobs that may
    wait, GiB of files and records (None or 0: no limit). Raises SpecError where there is one of this name, or a figure
    is out of range."""
    check_name("project", name)
    if name in _projects(acting.ledger):
        raise SpecError(f"there is a project {name} already", remedy="give another name; `farm projects list` has all")
    terms = _changed(USUAL, share, phone_hours, most_waiting, storage_gib)
    acting.ledger.people.add_project(name, note, terms)
    return Opened(name, terms)


@dataclass(frozen=True)
class Changed(Settled):
    project: str
    terms: Terms
    is_new: bool

    @property
    def says(self) -> str:
        return f"{self.project} has {self.terms.text}"


@on_pages
@act(ADMINISTERS)
def set_project(
    acting: Acting, name: str, note: str | None = None, share: Figure | None = None, phone_hours: Figure | None = None,
    most_waiting: int | None = None, storage_gib: Figure | None = None,
) -> Changed:  # fmt: skip
    """Give a project another note, share or limits (0: no limit any more); None: as it was. Raises UnknownName,
    SpecError."""
    check_project(acting.ledger, name)
    before = next(each for each in acting.ledger.people.projects() if each.name == name)
    terms = _changed(before.terms, share, phone_hours, most_waiting, storage_gib)
    is_new = terms != before.terms or note not in (None, before.note)
    if is_new:
        acting.ledger.people.set_project(name, before.note if note is None else note, terms)
    return Changed(name, terms, is_new)


def _changed(before: Terms, *asked: float | None) -> Terms:
    """Return terms with what was asked for, in their order; None: as it was."""
    terms = Terms(*(was if new is None else new for was, new in zip(vars(before).values(), asked, strict=True)))  # type: ignore[arg-type]
    if not SHARES[0] <= terms.share <= SHARES[1]:
        raise SpecError(f"a share of {terms.share:g} is out of range", remedy=f"{SHARES[0]:g} to {SHARES[1]:g}")
    for name, most in [*vars(terms).items()][1:]:
        if not 0 <= most <= MOST:
            raise SpecError(f"{name}: {most:g} is out of range", remedy=f"0 (no limit) to {MOST:g}")
    return terms


def check_waiting(ledger: Ledger, project: str, more: int) -> None:
    """Raise SpecError where more jobs would wait than a project may have."""
    most = ledger.people.terms().get(project, USUAL).most_waiting
    if most and (wait := ledger.people.waiting([project]).get(project, 0)) + more > most:
        raise SpecError(
            f"the project {project} has {counted(wait, 'job')} that wait, and {more} more would be over its {most}",
            remedy=f"wait until some are done, submit fewer, or `farm projects set {project} --waiting NUMBER`",
        )


def check_project(ledger: Ledger, name: str) -> None:
    """Raise UnknownName where there is no such project."""
    if name != COMMON and name not in (known := _projects(ledger)):
        raise UnknownName(
            f"there is no project {name!r}", remedy=f"there are: {', '.join(known)}; or `farm projects add`"
        )


def _projects(ledger: Ledger) -> Sequence[str]:
    return [each.name for each in ledger.people.projects()]


def check_name(what: str, name: str) -> None:
    """Raise SpecError where no person or project may be called so."""
    if not re.fullmatch(NAME, name):
        told = f"a {what} cannot be called {name[:80]!r}"
        raise SpecError(told, remedy="1 to 60 letters, digits, and `. _ @ -` after the first")
