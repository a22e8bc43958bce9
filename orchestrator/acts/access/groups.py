"""Acts on groups of people, which have roles as a person has: who belongs to one has its roles beside their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.acts.act import Acting, Settled, act, on_pages
from orchestrator.model.people import Kind

from .people import Admitted, known, let_in
from .projects import ADMINISTERS


@on_pages
@act(ADMINISTERS)
def add_group(acting: Acting, name: str) -> Admitted:
    """Add a group without a role and without people; `grant role` gives it roles, `remove person` ends it. Raises
    SpecError."""
    return let_in(acting, name, Kind.GROUP)


@dataclass(frozen=True)
class Grouped(Settled):
    group: str
    people: list[str]
    """The names for whom it changed."""
    belong: bool
    is_new: bool

    @property
    def says(self) -> str:
        who = ", ".join(self.people) or "all of them"
        return f"{who}: {'in' if self.belong else 'not in'} the group {self.group}"


@on_pages
@act(ADMINISTERS)
def join_group(acting: Acting, group: str, people: Sequence[str]) -> Grouped:
    """Let people and programs belong to a group. Raises UnknownName, SpecError."""
    new = acting.ledger.people.groups.join(group, _known(acting, group, people))
    return Grouped(group, new, True, bool(new))


@on_pages
@act(ADMINISTERS)
def leave_group(acting: Acting, group: str, people: Sequence[str]) -> Grouped:
    """Let people and programs belong to a group no more. Raises UnknownName, SpecError."""
    gone = acting.ledger.people.groups.leave(group, _known(acting, group, people))
    return Grouped(group, gone, False, bool(gone))


def _known(acting: Acting, group: str, people: Sequence[str]) -> list[str]:
    known(acting.ledger, group, Kind.GROUP)
    return [known(acting.ledger, each, Kind.PERSON, Kind.SERVICE).name for each in people]
