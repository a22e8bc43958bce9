"""Keep what somebody made, which is listed, and ended but never removed; some of it by a secret that was shown once."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import Column, ColumnElement, Connection, Select, Table, insert, select, update

from orchestrator.ledger.database import Database
from orchestrator.ledger.rows import AnyRow

from .uses import Uses

T = TypeVar("T")
Ends = TypeVar("Ends")
PREFIX = "farm_"
"""The start of a secret, by which those who look for lost ones know it."""


class Kept(Generic[T]):
    """Rows of a table of a ledger; one transaction a call. All methods raise ServiceDown if it is away."""

    made: ClassVar[type[Any]]
    """The dataclass of one."""
    table: ClassVar[Table]
    ended: ClassVar[Column[Any]]
    """The column of when one ended; empty: it counts."""
    emptied: ClassVar[tuple[str, ...]] = ()
    """The columns that are emptied then."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def every(self, *which: ColumnElement[bool]) -> list[T]:
        """Return all of them, the newest first, those that ended among them."""
        wanted = select(self.table).where(*which).order_by(self.table.c.made_at.desc(), self.table.c.id)
        with self._database.read() as connection:
            return self._told(connection, connection.execute(wanted).all())

    def one(self, name: str) -> T | None:
        return next(iter(self.every(self.table.c.id == name)), None)

    def end(self, name: str) -> bool:
        """Let one count no more; False: it did not."""
        with self._database.write() as connection:
            return bool(self.end_all(connection, self.table.c.id == name))

    @classmethod
    def end_all(cls, connection: Connection, *which: ColumnElement[bool]) -> int:
        """Let all of these count no more; return the number of those that did."""
        now = {cls.ended: time.time(), **{cls.table.c[each]: "" for each in cls.emptied}}
        return connection.execute(update(cls.table).where(*which, cls.ended.is_(None)).values(now)).rowcount

    def _told(self, _: Connection, rows: Sequence[AnyRow]) -> list[T]:
        return list(map(TypeAdapter(self.made).validate_python, (dict(row._mapping) for row in rows)))


class Secrets(Kept[T]):
    """Rows under the SHA-256 of 256 random bits, which is as hard to turn back as the bits are to guess."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._uses = Uses(database, self.table)

    def _make(self, **row: Any) -> tuple[str, str]:
        """Return the id and the secret of a new one; nobody can read the secret again."""
        name, text = secrets.token_hex(4), PREFIX + secrets.token_urlsafe(32)
        with self._database.write() as connection:
            connection.execute(insert(self.table).values(id=name, sha256=digest(text), made_at=time.time(), **row))
        return name, text

    def _of(self, connection: Connection, text: str, among: Select[Any]) -> AnyRow | None:
        """Return the row of a secret; None: there is none, or it counts no more."""
        own, until = self.table.c, self.table.c.ends_at
        counts = self.ended.is_(None) & (until.is_(None) | (until > time.time()))
        return connection.execute(among.where(own.sha256 == digest(text), counts)).first()

    def _note(self, row: AnyRow) -> None:
        """Note that one was used."""
        self._uses.note(row.id, row.used_at)


def digest(text: str) -> str:
    """Return the SHA-256 under which a secret is kept."""
    return hashlib.sha256(text.encode()).hexdigest()
