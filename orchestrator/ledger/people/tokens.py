"""Keep tokens: the SHA-256 of 256 random bits, which is as hard to turn back as the bits are to guess."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, insert, select, update

from orchestrator.ledger.database import Database
from orchestrator.ledger.rows import AnyRow
from orchestrator.model.people import Role, Use
from orchestrator.model.rights import Grants, Token

from .tables import MEMBERS, PEOPLE, TOKENS
from .uses import Uses

PREFIX = "farm_"
"""The start of a token's text, by which those who look for lost secrets know it."""
_OF_PERSON = TOKENS.join(PEOPLE, PEOPLE.c.name == TOKENS.c.person)
_COUNTS = TOKENS.c.revoked_at.is_(None) & PEOPLE.c.ended_at.is_(None)
_SHOWN = (
    select(TOKENS, PEOPLE.c.role, MEMBERS.c.project.label("place"), MEMBERS.c.role.label("there"))
    .select_from(_OF_PERSON.outerjoin(MEMBERS, MEMBERS.c.person == TOKENS.c.person))
    .where(TOKENS.c.sha256 == bindparam("shown"), TOKENS.c.use == bindparam("meant_for"), _COUNTS)
)
"""A token that counts, once for each role of its person in a project: each request asks this."""


@dataclass(frozen=True)
class Bearer:
    """The person behind a token, and what it lets them do."""

    person: str
    grants: Grants
    token: str = ""
    """The id of the token."""


class Tokens:
    """Tokens of a ledger; one transaction a call. All methods raise ServiceDown if it is away."""

    def __init__(self, database: Database) -> None:
        self._database, self._uses = database, Uses(database, TOKENS)

    def make(
        self, person: str, most: Role, project: str, note: str, ends_at: float | None, use: Use = Use.API
    ) -> tuple[str, str]:
        """Return the id and the text of a new token; nobody can read the text again."""
        name, text = new_secret()
        row = {"id": name, "sha256": digest(text), "person": person, "most": most, "project": project, "note": note}
        with self._database.write() as connection:
            connection.execute(insert(TOKENS).values(**row, made_at=time.time(), ends_at=ends_at, use=use))
        return name, text

    def revoke(self, name: str) -> None:
        with self._database.write() as connection:
            mine = TOKENS.c.id == name
            connection.execute(update(TOKENS).where(mine, TOKENS.c.revoked_at.is_(None)).values(revoked_at=time.time()))

    def every(self, person: str = "") -> list[Token]:
        """Return the tokens of one person or of all, the newest first."""
        mine = select(TOKENS).order_by(TOKENS.c.made_at.desc(), TOKENS.c.id)
        with self._database.read() as connection:
            return [
                _token(row) for row in connection.execute(mine.where(TOKENS.c.person == person) if person else mine)
            ]

    def one(self, name: str) -> Token | None:
        with self._database.read() as connection:
            row = connection.execute(select(TOKENS).where(TOKENS.c.id == name)).first()
            return None if row is None else _token(row)

    def bearer(self, text: str, use: Use = Use.API) -> Bearer | None:
        """Return who shows this text for this use; None: nobody may by it, or not any more. Notes that it was used."""
        with self._database.read() as connection:
            rows = connection.execute(_SHOWN, {"shown": digest(text), "meant_for": use}).all()
        if not rows or (rows[0].ends_at is not None and rows[0].ends_at <= time.time()):
            return None
        row = rows[0]
        projects = {each.place: Role(each.there) for each in rows if each.place is not None}
        self._uses.note(row.id, row.used_at)
        grants = Grants(Role(row.role) if row.role else None, projects)
        return Bearer(row.person, grants.within(Role(row.most), row.project), row.id)


def revoke_of(connection: Connection, person: str, now: float, uses: Iterable[Use] = Use) -> None:
    """Revoke all tokens of somebody, for these uses or for all."""
    mine = (TOKENS.c.person == person) & TOKENS.c.revoked_at.is_(None) & TOKENS.c.use.in_(list(uses))
    connection.execute(update(TOKENS).where(mine).values(revoked_at=now))


def new_secret() -> tuple[str, str]:
    """Return an id and a text of 256 random bits."""
    return secrets.token_hex(4), PREFIX + secrets.token_urlsafe(32)


def digest(text: str) -> str:
    """Return the SHA-256 under which a text is kept."""
    return hashlib.sha256(text.encode()).hexdigest()


def _token(row: AnyRow) -> Token:
    return Token(
        id=row.id,
        person=row.person,
        most=Role(row.most),
        project=row.project,
        note=row.note,
        made_at=row.made_at,
        ends_at=row.ends_at,
        revoked_at=row.revoked_at,
        used_at=row.used_at,
        use=Use(row.use),
    )
