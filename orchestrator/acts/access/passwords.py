"""Acts on passwords: with which people log in on the pages."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pydantic import SecretStr

from orchestrator.acts.act import Acting, Done, Given, act, on_pages
from orchestrator.ledger import Ledger
from orchestrator.model.errors import SpecError
from orchestrator.model.people import Kind, Role, Use
from orchestrator.model.rights import Actor, Place, Right

from .kept import minute
from .people import known
from .projects import ADMINISTERS

SHORTEST, LONGEST = 10, 200
"""Characters of a password."""
INVITED_S = 3 * 86_400.0


@dataclass(frozen=True)
class Invited(Done):
    id: str
    person: str
    ends_at: float
    """Unix time."""
    token: str
    TOLD_ONCE = "token"

    @property
    def on(self) -> str:
        return self.person

    @property
    def secret(self) -> str:
        return f"/password#{self.token}"

    @property
    def lines(self) -> list[str]:
        return [f"whoever shows the token {self.id} until {minute(self.ends_at)} sets the password of {self.person}"]


@on_pages
@act(ADMINISTERS)
def invite_person(acting: Acting, name: str) -> Invited:
    """Make a token by which somebody sets their password, once, within three days. Raises UnknownName, SpecError."""
    person = known(acting.ledger, name, Kind.PERSON).name
    ends_at = time.time() + INVITED_S
    token, text = acting.ledger.people.tokens.make(person, Role.VIEW, "", "sets a password", ends_at, Use.PASSWORD)
    return Invited(token, person, ends_at, text)


@dataclass(frozen=True)
class PasswordSet(Done):
    person: str

    @property
    def lines(self) -> list[str]:
        return [f"{self.person} has a new password; their sessions on the pages have ended"]


def of_person(_: Ledger, __: Actor, given: Given) -> list[Place]:
    """Return the place of an act on a person: in no project, and their own."""
    return [Place("", given["name"])]


@act(Right(Role.ADMINISTER, own=Role.VIEW, of="farm"), at=of_person)
def set_password(acting: Acting, name: str, password: SecretStr) -> PasswordSet:
    """Give somebody the password with which they log in on the pages. Raises UnknownName, SpecError.

    It has no route: a token of little right would become a password of all.
    """
    person, text = known(acting.ledger, name, Kind.PERSON).name, password.get_secret_value()
    if not SHORTEST <= len(text) <= LONGEST:
        raise SpecError(
            f"a password has {SHORTEST} to {LONGEST} characters, and this one has {len(text)}",
            remedy="take several words that do not belong together",
        )
    acting.ledger.people.passwords.set(person, text)
    return PasswordSet(person)
