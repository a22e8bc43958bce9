"""Keep tokens: the SHA-256 of their text, whose they are, and what they let them do."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sqlalchemy import bindparam, select

from orchestrator.model.people import Role, Use
from orchestrator.model.rights import Grants, Token

from .groups import acts_as
from .kept import PREFIX, Secrets, digest
from .tables import MEMBERS, PEOPLE, TOKENS

_ACTS_AS = PEOPLE.alias("acts_as")
_OF_PERSON = TOKENS.join(PEOPLE, PEOPLE.c.name == TOKENS.c.person)
_WITH_GROUPS = _OF_PERSON.join(_ACTS_AS, acts_as(_ACTS_AS.c.name, TOKENS.c.person))
_COUNTS = TOKENS.c.revoked_at.is_(None) & PEOPLE.c.ended_at.is_(None)
_SHOWN = (
    select(TOKENS, _ACTS_AS.c.role, MEMBERS.c.project.label("place"), MEMBERS.c.role.label("there"))
    .select_from(_WITH_GROUPS.outerjoin(MEMBERS, MEMBERS.c.person == _ACTS_AS.c.name))
    .where(TOKENS.c.sha256 == bindparam("shown"), TOKENS.c.use == bindparam("meant_for"), _COUNTS)
)
"""A token that counts, once for each role of its person or a group of theirs in a project: each request asks this."""
__all__ = ["PREFIX", "Bearer", "Tokens"]


@dataclass(frozen=True)
class Bearer:
    """The person behind a token, and what it lets them do."""

    person: str
    grants: Grants
    token: str = ""
    """The id of the token."""


class Tokens(Secrets[Token]):
    made, table, ended = Token, TOKENS, TOKENS.c.revoked_at

    def make(
        self, person: str, most: Role, project: str, note: str, ends_at: float | None, use: Use = Use.API
    ) -> tuple[str, str]:
        """Return the id and the text of a new token; nobody can read the text again."""
        return self._make(person=person, most=most, project=project, note=note, ends_at=ends_at, use=use)

    def of(self, person: str) -> list[Token]:
        """Return the tokens of one person, the newest first."""
        return self.every(TOKENS.c.person == person)

    def bearer(self, text: str, use: Use = Use.API) -> Bearer | None:
        """Return who shows this text for this use; None: nobody may by it, or not any more. Notes that it was used."""
        with self._database.read() as connection:
            rows = connection.execute(_SHOWN, {"shown": digest(text), "meant_for": use}).all()
        if not rows or (rows[0].ends_at is not None and rows[0].ends_at <= time.time()):
            return None
        row = rows[0]
        given = [("", Role(each.role)) for each in rows if each.role]
        given += [(each.place, Role(each.there)) for each in rows if each.place is not None]
        self._note(row)
        grants = Grants.of(given)
        return Bearer(row.person, grants.within(Role(row.most), row.project), row.id)
