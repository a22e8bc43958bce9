"""Keep who has acted on the farm. One transaction a call, or the act's own (`Ledger.together`)."""

from __future__ import annotations

import time

from sqlalchemy import func, insert, select

from orchestrator.ledger.database import Database
from orchestrator.ledger.rows import Actor, AuditRow, Door
from orchestrator.ledger.tables import AUDIT


class Audit:
    """The acts that were done. Every method raises ServiceDown where the database is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, actor: Actor, act: str, target: str, said: str) -> None:
        """Store that an act was done."""
        row = {"at": time.time(), "who": actor.who[:100], "door": actor.door, "act": act}
        with self._database.write() as connection:
            connection.execute(insert(AUDIT).values(**row, target=target, said=said))

    def newest(self, most: int, *, first: int = 0) -> list[AuditRow]:
        """Return the acts, the newest first, without the `first` of them."""
        wanted = select(AUDIT).order_by(AUDIT.c.id.desc()).offset(first).limit(most)
        with self._database.read() as connection:
            return [
                AuditRow(row.at, row.who, Door(row.door), row.act, row.target, row.said)
                for row in connection.execute(wanted)
            ]

    def count(self) -> int:
        """Return the number of acts."""
        with self._database.read() as connection:
            return connection.scalar(select(func.count()).select_from(AUDIT)) or 0
