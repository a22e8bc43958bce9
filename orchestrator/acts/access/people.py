"""Acts on people: let them in, and give and take roles."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.acts.act import Acting, Done, Settled, act, of_project, on_pages
from orchestrator.ledger import Ledger
from orchestrator.model.errors import SpecError, UnknownName
from orchestrator.model.people import Kind, Role
from orchestrator.model.rights import Person, Right

from .projects import ADMINISTERS, check_name, check_project


@dataclass(frozen=True)
class Admitted(Settled):
    person: str
    kind: Kind
    is_new: bool

    @property
    def says(self) -> str:
        return f"{self.person} may use this farm" if self.did else f"{self.person} is let in already"


@on_pages
@act(ADMINISTERS)
def add_person(acting: Acting, name: str, *, service: bool = False) -> Admitted:
    """Let somebody in, or a program (`service`), without a role. One who left is the same person again."""
    return let_in(acting, name, Kind.SERVICE if service else Kind.PERSON)


def let_in(acting: Acting, name: str, kind: Kind) -> Admitted:
    """Let a person, a program or a group in. Raises SpecError where the name is another's."""
    check_name("group" if kind is Kind.GROUP else "person", name)
    people = acting.ledger.people
    before = people.one(name)
    if before is not None and (before.kind is Kind.GROUP) is not (kind is Kind.GROUP):
        raise SpecError(f"{name} is the name of a {before.kind}", remedy="give another one: what they did bears it")
    is_new = before is None or before.ended_at is not None or before.kind is not kind
    if is_new:
        people.add(name, kind)
    return Admitted(name, kind, is_new)


@dataclass(frozen=True)
class Granted(Done):
    person: str
    role: Role
    project: str

    @property
    def lines(self) -> list[str]:
        return [f"{self.person} has the role {self.role} {_where(self.project)}"]


@on_pages
@act(Right(Role.ADMINISTER), at=of_project)
def grant_role(acting: Acting, name: str, role: Role, project: str = "") -> Granted:
    """Give a person or a group a role in a project, or (empty) in the farm, in the place of another there. Raises
    UnknownName."""
    person = known(acting.ledger, name).name
    if project:
        check_project(acting.ledger, project)
    acting.ledger.people.grant(person, role, project)
    return Granted(person, role, project)


@dataclass(frozen=True)
class Taken(Settled):
    person: str
    role: Role | None
    """The role that was taken; None: there was none."""
    project: str

    @property
    def did(self) -> bool:
        return self.role is not None

    @property
    def says(self) -> str:
        return f"{self.person} has no role {_where(self.project)}"


@on_pages
@act(Right(Role.ADMINISTER), at=of_project)
def revoke_role(acting: Acting, name: str, project: str = "") -> Taken:
    """Take away the role of a person or a group in a project, or (empty) in the farm; other roles stay, also those by a
    group. Raises UnknownName."""
    person = known(acting.ledger, name)
    if project:
        check_project(acting.ledger, project)
    role = person.own.projects.get(project) if project else person.own.farm
    if role is not None:
        acting.ledger.people.grant(person.name, None, project)
    return Taken(person.name, role, project)


@dataclass(frozen=True)
class Left(Done):
    person: str

    @property
    def lines(self) -> list[str]:
        return [f"{self.person} may not use this farm any more; what they did bears their name"]


@on_pages
@act(ADMINISTERS)
def remove_person(acting: Acting, name: str) -> Left:
    """Take all roles and tokens of a person, or end a group. Raises UnknownName."""
    acting.ledger.people.end(known(acting.ledger, name).name)
    return Left(name)


def known(ledger: Ledger, name: str, *kinds: Kind) -> Person:
    """Return somebody who is let in, of these kinds (none: any, groups, too). Raises UnknownName, SpecError."""
    found = ledger.people.one(name)
    if found is None or found.ended_at is not None:
        add = "group" if kinds == (Kind.GROUP,) else "add"
        told = f"{'no group' if add == 'group' else 'nobody'} is called {name!r} on this farm"
        raise UnknownName(told, remedy=f"`farm people {add} {name}` lets them in")
    if kinds and found.kind not in kinds:
        raise SpecError(f"{name} is a {found.kind}", remedy=f"this is of a {' or a '.join(kinds)}; `farm people list`")
    return found


def _where(project: str) -> str:
    return f"in the project {project}" if project else "in the farm"
