"""Acts on tokens: what people and programs show to the farm's API."""

from __future__ import annotations

import time
from dataclasses import dataclass

from orchestrator.acts.act import Acting, Done, Given, Settled, act, on_pages
from orchestrator.ledger import Ledger
from orchestrator.model.errors import SpecError
from orchestrator.model.people import Kind, Role
from orchestrator.model.rights import Actor, Place, Right

from .kept import LASTS_S, LONGEST_S, end, minute
from .passwords import of_person
from .people import known
from .projects import ADMINISTERS, check_project


@dataclass(frozen=True)
class Made(Done):
    id: str
    person: str
    most: Role
    project: str
    ends_at: float | None
    """Unix time; None: it does not expire."""
    token: str
    TOLD_ONCE = "token"

    @property
    def on(self) -> str:
        return f"{self.id} of {self.person}"

    @property
    def lines(self) -> list[str]:
        where = f" in the project {self.project}" if self.project else ""
        end = minute(self.ends_at) if self.ends_at else "it is revoked"
        what = "do what their roles say" if self.most is Role.ADMINISTER else str(self.most)
        return [f"token {self.id} lets {self.person} {what}{where} until {end}"]


@on_pages
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
    person = known(acting.ledger, name, Kind.PERSON, Kind.SERVICE).name
    if project:
        check_project(acting.ledger, project)
    if until is not None and until <= time.time():
        raise SpecError("the token would have expired already", remedy="give a time that is to come, or none")
    token, text = acting.ledger.people.tokens.make(person, most, project, note, until)
    return Made(token, person, most, project, until, text)


@on_pages
@act(Right(Role.ADMINISTER, own=Role.VIEW, of="farm"), at=of_person, routed=False)
def create_own_token(acting: Acting, name: str, until: float | None = None, note: str = "") -> Made:
    """Make a token of somebody with all that their roles give, until then (Unix time; None: for 30 days; a year at
    most). It has no route: a token of little right, or of few days, would beget one of more. Raises UnknownName,
    SpecError."""
    now = time.time()
    ends_at = now + LASTS_S if until is None else until
    if ends_at > now + LONGEST_S:
        raise SpecError("a token of one's own ends within a year", remedy="give an earlier time, or none: 30 days")
    return create_token.__wrapped__(acting, name, until=ends_at, note=note)  # type: ignore[attr-defined, no-any-return]


@dataclass(frozen=True)
class Revoked(Settled):
    id: str
    person: str
    is_new: bool

    @property
    def says(self) -> str:
        return f"token {self.id} of {self.person} counts no more"


def _of_token(ledger: Ledger, _: Actor, given: Given) -> list[Place]:
    token = ledger.people.tokens.one(given["token"])
    return [] if token is None else [Place("", token.person)]


@on_pages
@act(Right(Role.ADMINISTER, own=Role.VIEW, of="farm"), at=_of_token)
def revoke_token(acting: Acting, token: str) -> Revoked:
    """Let a token count no more; one's own, or anybody's. Raises UnknownName."""
    found, is_new = end(acting.ledger.people.tokens, "token", token)
    return Revoked(token, found.person, is_new)
