"""Keep passwords as hashes by Argon2id (RFC 9106), which takes 64 MiB and some 50 ms to try one."""

from __future__ import annotations

from functools import cache
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY
from sqlalchemy import select, update

from orchestrator.ledger.database import Database
from orchestrator.model.people import Use

from .tables import PEOPLE, TOKENS
from .tokens import Tokens

HASHER = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
AT_ONCE = BoundedSemaphore(2)
"""Hashes that are computed at the same time, which bounds their memory however many people log in."""


class Passwords:
    """Passwords of a ledger; one transaction a call. All methods raise ServiceDown if it is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set(self, person: str, password: str) -> None:
        """Give somebody this password, and end their sessions and the links that would set another one."""
        with AT_ONCE:
            kept = HASHER.hash(password)
        with self._database.write() as connection:
            connection.execute(update(PEOPLE).where(PEOPLE.c.name == person).values(password=kept))
            Tokens.end_all(connection, TOKENS.c.person == person, TOKENS.c.use.in_([Use.SESSION, Use.PASSWORD]))

    def fits(self, person: str, password: str) -> bool:
        """Return whether it is the password of somebody who is let in. It takes as long where there is nobody."""
        mine = select(PEOPLE.c.password).where(PEOPLE.c.name == person, PEOPLE.c.ended_at.is_(None))
        with self._database.read() as connection:
            kept = str(connection.scalar(mine) or "")
        with AT_ONCE:
            try:
                return HASHER.verify(kept or _nobody(), password) and bool(kept)
            except (VerificationError, InvalidHashError):
                return False


@cache
def _nobody() -> str:
    return HASHER.hash("the password of nobody")
