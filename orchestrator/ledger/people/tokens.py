"""Keep tokens: the SHA-256 of their text, whose they are, and what they let them do."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from orchestrator.model.people import Role, Use
from orchestrator.model.rights import Grants, Token

from .kept import PREFIX, Secrets
from .tables import MEMBERS, PEOPLE, TOKENS

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
        people = select(TOKENS, PEOPLE.c.role).join(PEOPLE, PEOPLE.c.name == TOKENS.c.person)
        with self._database.read() as connection:
            row = self._of(connection, text, people.where(TOKENS.c.use == use, PEOPLE.c.ended_at.is_(None)))
            if row is None:
                return None
            of = connection.execute(select(MEMBERS).where(MEMBERS.c.person == row.person))
            grants = Grants(Role(row.role) if row.role else None, {each.project: Role(each.role) for each in of})
        self._note(row)
        return Bearer(row.person, grants.within(Role(row.most), row.project), row.id)
