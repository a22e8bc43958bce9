"""Acts on people: let them in, give and take roles, passwords and tokens, add projects."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import SecretStr

from orchestrator.ledger import Ledger
from orchestrator.model.errors import SpecError, UnknownName
from orchestrator.model.people import COMMON, Kind, Role, Use
from orchestrator.model.rights import USUAL, Actor, Person, Place, Right, Terms

from .act import Acting, Done, Given, act, of_project, on_pages

ADMINISTERS = Right(Role.ADMINISTER, of="farm")
SHARES = (0.01, 100.0)
MOST = 1e9
SHORTEST, LONGEST = 10, 200
"""Characters of a password."""
INVITED_S = 3 * 86_400.0
NAME = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,59}"
"""The names of people and projects."""


@dataclass(frozen=True)
class Admitted(Done):
    person: str
    kind: Kind
    is_new: bool

    @property
    def did(self) -> bool:
        return self.is_new

    @property
    def ok(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return [f"{self.person} may use this farm" if self.did else f"nothing to do: {self.person} is let in already"]


@act(ADMINISTERS)
def add_person(acting: Acting, name: str, *, service: bool = False) -> Admitted:
    """Let somebody in, or a program (`service`), without a role. One who left is the same person again."""
    _check_name("person", name)
    people, kind = acting.ledger.people, Kind.SERVICE if service else Kind.PERSON
    known = people.one(name)
    is_new = known is None or known.ended_at is not None or known.kind is not kind
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
        where = f"in the project {self.project}" if self.project else "in the farm"
        return [f"{self.person} has the role {self.role} {where}"]


@act(Right(Role.ADMINISTER), at=of_project)
def grant_role(acting: Acting, name: str, role: Role, project: str = "") -> Granted:
    """Give somebody a role in a project, or (empty) in the farm, in the place of another there. Raises UnknownName."""
    person = _known(acting.ledger, name).name
    if project:
        check_project(acting.ledger, project)
    acting.ledger.people.grant(person, role, project)
    return Granted(person, role, project)


@dataclass(frozen=True)
class Taken(Done):
    person: str
    role: Role | None
    """The role that was taken; None: there was none."""
    project: str

    @property
    def did(self) -> bool:
        return self.role is not None

    @property
    def ok(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        where = f"in the project {self.project}" if self.project else "in the farm"
        return [f"{'' if self.did else 'nothing to do: '}{self.person} has no role {where}"]


@act(Right(Role.ADMINISTER), at=of_project)
def revoke_role(acting: Acting, name: str, project: str = "") -> Taken:
    """Take away the role of somebody in a project, or (empty) in the farm; other roles stay. Raises UnknownName."""
    person = _known(acting.ledger, name)
    if project:
        check_project(acting.ledger, project)
    role = person.grants.projects.get(project) if project else person.grants.farm
    if role is not None:
        acting.ledger.people.grant(person.name, None, project)
    return Taken(person.name, role, project)


@dataclass(frozen=True)
class Invited(Done):
    id: str
    person: str
    ends_at: float
    """Unix time."""
    token: str
    """The text, which is told this once, and in no audit."""

    @property
    def on(self) -> str:
        return self.person

    @property
    def secret(self) -> str:
        return self.token

    @property
    def lines(self) -> list[str]:
        return [f"whoever shows the token {self.id} until {_minute(self.ends_at)} sets the password of {self.person}"]


@act(ADMINISTERS)
def invite_person(acting: Acting, name: str) -> Invited:
    """Make a token by which somebody sets their password, once, within three days. Raises UnknownName, SpecError."""
    person = _who_logs_in(acting.ledger, name)
    ends_at = time.time() + INVITED_S
    token, text = acting.ledger.people.tokens.make(person, Role.VIEW, "", "sets a password", ends_at, Use.PASSWORD)
    return Invited(token, person, ends_at, text)


@dataclass(frozen=True)
class PasswordSet(Done):
    person: str

    @property
    def lines(self) -> list[str]:
        return [f"{self.person} has a new password; their sessions on the pages have ended"]


def _of_person(_: Ledger, __: Actor, given: Given) -> list[Place]:
    return [Place("", given["name"])]


@act(Right(Role.ADMINISTER, own=Role.VIEW, of="farm"), at=_of_person)
def set_password(acting: Acting, name: str, password: SecretStr) -> PasswordSet:
    """Give somebody the password with which they log in on the pages. Raises UnknownName, SpecError.

    It has no route: a token of little right would become a password of all.
    """
    person, text = _who_logs_in(acting.ledger, name), password.get_secret_value()
    if not SHORTEST <= len(text) <= LONGEST:
        raise SpecError(
            f"a password has {SHORTEST} to {LONGEST} characters, and this one has {len(text)}",
            remedy="take several words that do not belong together",
        )
    acting.ledger.people.passwords.set(person, text)
    return PasswordSet(person)


@dataclass(frozen=True)
class Left(Done):
    person: str

    @property
    def lines(self) -> list[str]:
        return [f"{self.person} may not use this farm any more; what they did bears their name"]


@act(ADMINISTERS)
def remove_person(acting: Acting, name: str) -> Left:
    """Take all roles and tokens of somebody. Raises UnknownName."""
    acting.ledger.people.end(_known(acting.ledger, name).name)
    return Left(name)


@dataclass(frozen=True)
class Made(Done):
    id: str
    person: str
    most: Role
    project: str
    ends_at: float | None
    """Unix time; None: it does not expire."""
    token: str
    """The text, which is told this once, and in no audit."""

    @property
    def on(self) -> str:
        return f"{self.id} of {self.person}"

    @property
    def secret(self) -> str:
        return self.token

    @property
    def lines(self) -> list[str]:
        where = f" in the project {self.project}" if self.project else ""
        end = _minute(self.ends_at) if self.ends_at else "it is revoked"
        return [f"token {self.id} lets {self.person} {self.most}{where} until {end}"]


@act(ADMINISTERS)
def create_token(
    acting: Acting,
    name: str,
    most: Role = Role.ADMINISTER,
    project: str = "",
    until: float | None = None,
    note: str = "",
) -> Made:
    """Make a token of somebody, which gives no more than the role `most`, only in this project (empty: wherever they
    have a role), until then (Unix time; None: until it is revoked). Raises UnknownName, SpecError."""
    person = _known(acting.ledger, name).name
    if project:
        check_project(acting.ledger, project)
    if until is not None and until <= time.time():
        raise SpecError("the token would have expired already", remedy="give a time that is to come, or none")
    token, text = acting.ledger.people.tokens.make(person, most, project, note, until)
    return Made(token, person, most, project, until, text)


@dataclass(frozen=True)
class Revoked(Done):
    id: str
    person: str
    is_new: bool

    @property
    def did(self) -> bool:
        return self.is_new

    @property
    def ok(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        before = "" if self.did else "nothing to do: "
        return [f"{before}token {self.id} of {self.person} counts no more"]


def _of_token(ledger: Ledger, _: Actor, given: Given) -> list[Place]:
    token = ledger.people.tokens.one(given["token"])
    return [] if token is None else [Place("", token.person)]


@on_pages
@act(Right(Role.ADMINISTER, own=Role.VIEW, of="farm"), at=_of_token)
def revoke_token(acting: Acting, token: str) -> Revoked:
    """Let a token count no more; one's own, or anybody's. Raises UnknownName."""
    found = acting.ledger.people.tokens.one(token)
    if found is None:
        raise UnknownName(f"there is no token {token!r}", remedy="`farm tokens list` says which there are")
    if found.revoked_at is None:
        acting.ledger.people.tokens.revoke(token)
    return Revoked(token, found.person, found.revoked_at is None)


@dataclass(frozen=True)
class Opened(Done):
    project: str
    terms: Terms

    @property
    def lines(self) -> list[str]:
        return [f"{self.project} is a project of this farm with {self.terms.text}"]


@act(ADMINISTERS)
def add_project(
    acting: Acting, name: str, note: str = "", share: float | None = None, phone_hours: float | None = None,
    most_waiting: int | None = None,
) -> Opened:  # fmt: skip
    """Add a project with a share of the farm beside others' (None: 1), and limits: phone-hours a week, jobs that may
    wait (None or 0: no limit). Raises SpecError where there is one of this name, or a figure is out of range."""
    _check_name("project", name)
    if name in _projects(acting.ledger):
        raise SpecError(f"there is a project {name} already", remedy="give another name; `farm projects list` has all")
    terms = _changed(USUAL, share, phone_hours, most_waiting)
    acting.ledger.people.add_project(name, note, terms)
    return Opened(name, terms)


@dataclass(frozen=True)
class Changed(Opened):
    is_new: bool

    @property
    def did(self) -> bool:
        return self.is_new

    @property
    def ok(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return [f"{'' if self.did else 'nothing to do: '}{self.project} has {self.terms.text}"]


@act(ADMINISTERS)
def set_project(
    acting: Acting, name: str, note: str | None = None, share: float | None = None, phone_hours: float | None = None,
    most_waiting: int | None = None,
) -> Changed:  # fmt: skip
    """Give a project another note, share or limits (0: no limit any more); None: as it was. Raises UnknownName,
    SpecError."""
    check_project(acting.ledger, name)
    before = next(each for each in acting.ledger.people.projects() if each.name == name)
    terms = _changed(before.terms, share, phone_hours, most_waiting)
    is_new = terms != before.terms or note not in (None, before.note)
    if is_new:
        acting.ledger.people.set_project(name, before.note if note is None else note, terms)
    return Changed(name, terms, is_new)


def _changed(before: Terms, share: float | None, phone_hours: float | None, most_waiting: int | None) -> Terms:
    terms = Terms(
        before.share if share is None else share,
        before.phone_hours if phone_hours is None else phone_hours,
        before.most_waiting if most_waiting is None else most_waiting,
    )
    if not SHARES[0] <= terms.share <= SHARES[1]:
        raise SpecError(f"a share of {terms.share:g} is out of range", remedy=f"{SHARES[0]:g} to {SHARES[1]:g}")
    for name, most in (("phone_hours", terms.phone_hours), ("most_waiting", terms.most_waiting)):
        if not 0 <= most <= MOST:
            raise SpecError(f"{name}: {most:g} is out of range", remedy=f"0 (no limit) to {MOST:g}")
    return terms


def check_waiting(ledger: Ledger, project: str, more: int) -> None:
    """Raise SpecError where more jobs would wait than a project may have."""
    most = ledger.people.terms().get(project, USUAL).most_waiting
    if most and (wait := ledger.people.waiting(project)) + more > most:
        raise SpecError(
            f"the project {project} has {wait} jobs that wait, and {more} more would be over its {most}",
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


def _who_logs_in(ledger: Ledger, name: str) -> str:
    """Return the name of somebody who may have a password. Raises UnknownName, SpecError."""
    person = _known(ledger, name)
    if person.is_service:
        raise SpecError(f"{name} is a program, and logs in nowhere", remedy=f"`farm tokens create {name}`")
    return person.name


def _minute(at: float) -> str:
    return datetime.fromtimestamp(at).isoformat(" ", "minutes")


def _known(ledger: Ledger, name: str) -> Person:
    """Return somebody who is let in. Raises UnknownName."""
    found = ledger.people.one(name)
    if found is None or found.ended_at is not None:
        raise UnknownName(f"nobody is called {name!r} on this farm", remedy=f"`farm people add {name}` lets them in")
    return found


def _check_name(what: str, name: str) -> None:
    if not re.fullmatch(NAME, name):
        told = f"a {what} cannot be called {name[:80]!r}"
        raise SpecError(told, remedy="1 to 60 letters, digits, and `. _ @ -` after the first")
