"""Acts on people: let them in, and give and take roles."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.acts.act import Acting, Done, Settled, act, of_project
from orchestrator.ledger import Ledger
from orchestrator.model.errors import UnknownName
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


@act(ADMINISTERS)
def add_person(acting: Acting, name: str, *, service: bool = False) -> Admitted:
    """Let somebody in, or a program (`service`), without a role. One who left is the same person again."""
    check_name("person", name)
    people, kind = acting.ledger.people, Kind.SERVICE if service else Kind.PERSON
    before = people.one(name)
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


@act(Right(Role.ADMINISTER), at=of_project)
def grant_role(acting: Acting, name: str, role: Role, project: str = "") -> Granted:
    """Give somebody a role in a project, or (empty) in the farm, in the place of another there. Raises UnknownName."""
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


@act(Right(Role.ADMINISTER), at=of_project)
def revoke_role(acting: Acting, name: str, project: str = "") -> Taken:
    """Take away the role of somebody in a project, or (empty) in the farm; other roles stay. Raises UnknownName."""
    person = known(acting.ledger, name)
    if project:
        check_project(acting.ledger, project)
    role = person.grants.projects.get(project) if project else person.grants.farm
    if role is not None:
        acting.ledger.people.grant(person.name, None, project)
    return Taken(person.name, role, project)


@dataclass(frozen=True)
class Left(Done):
    person: str

    @property
    def lines(self) -> list[str]:
        return [f"{self.person} may not use this farm any more; what they did bears their name"]


@act(ADMINISTERS)
def remove_person(acting: Acting, name: str) -> Left:
    """Take all roles and tokens of somebody. Raises UnknownName."""
    acting.ledger.people.end(known(acting.ledger, name).name)
    return Left(name)


def known(ledger: Ledger, name: str) -> Person:
    """Return somebody who is let in. Raises UnknownName."""
    found = ledger.people.one(name)
    if found is None or found.ended_at is not None:
        raise UnknownName(f"nobody is called {name!r} on this farm", remedy=f"`farm people add {name}` lets them in")
    return found


def _where(project: str) -> str:
    return f"in the project {project}" if project else "in the farm"
