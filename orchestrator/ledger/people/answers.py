"""Keep what acts answered that somebody asked for once, under a key of their own."""

from __future__ import annotations

import time

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from orchestrator.ledger.database import Database
from orchestrator.model.errors import KeyTaken, SpecError
from orchestrator.model.rights import Once

from .tables import ANSWERS

KEPT_S = 86_400.0


class Answers:
    """Every method raises ServiceDown where the database is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def given(self, person: str, once: Once) -> str | None:
        """Return what was answered under a key; None: nothing yet. Raises SpecError where it was another request's."""
        mine = select(ANSWERS).where(ANSWERS.c.person == person, ANSWERS.c.key == once.key)
        with self._database.read() as connection:
            row = connection.execute(mine.where(ANSWERS.c.at > time.time() - KEPT_S)).first()
        if row is not None and row.request_sha256 != once.request_sha256:
            what = f"the key {once.key!r} was used for another request"
            raise SpecError(what, remedy="give each request a key of its own, and the same one when it is sent again")
        return None if row is None else str(row.answer)

    def keep(self, person: str, once: Once, answer: str) -> None:
        """Keep an answer, in the transaction of its act. Raises KeyTaken where another request was faster."""
        now = time.time()
        row = {"person": person, "key": once.key, "request_sha256": once.request_sha256, "answer": answer, "at": now}
        try:
            with self._database.write() as connection:
                connection.execute(delete(ANSWERS).where(ANSWERS.c.at <= now - KEPT_S))
                connection.execute(insert(ANSWERS).values(**row))
        except IntegrityError as e:
            raise KeyTaken(
                f"a request with the key {once.key!r} is under way", remedy="send it again in a moment"
            ) from e
