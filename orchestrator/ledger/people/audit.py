"""Keep who has acted on the farm, and who was refused. One transaction a call, or the act's own (`Ledger.together`)."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, func, insert, select

from orchestrator.ledger.database import Database
from orchestrator.ledger.rows import AuditRow
from orchestrator.ledger.tables import AUDIT
from orchestrator.model.people import Door

if TYPE_CHECKING:
    from orchestrator.model.rights import Actor


class Audit:
    """The acts. Rows are added, and never changed. Every method raises ServiceDown where the database is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(
        self, actor: Actor, act: str, target: str, said: str, *, refused: bool = False, into: Connection | None = None
    ) -> None:
        """Store that an act was done, or `refused`; `into`: with the transaction of this connection."""
        row = {"at": time.time(), "who": actor.who[:100], "door": actor.door, "origin": actor.origin[:100], "act": act}
        with self._database.write() if into is None else nullcontext(into) as connection:
            connection.execute(insert(AUDIT).values(**row, target=target, said=said, refused=refused))

    def newest(
        self, most: int, *, first: int = 0, who: str = "", act: str = "", refused: bool | None = None
    ) -> list[AuditRow]:
        """Return the acts, the newest first, without the `first` of them; of one person, of one kind, refused or not,
        where that is given."""
        of = _which(who, act, refused)
        wanted = select(AUDIT).where(*of).order_by(AUDIT.c.id.desc()).offset(first).limit(most)
        with self._database.read() as connection:
            return [
                AuditRow(row.at, row.who, Door(row.door), row.act, row.target, row.said, row.origin, bool(row.refused))
                for row in connection.execute(wanted)
            ]

    def count(self, *, who: str = "", act: str = "", refused: bool | None = None) -> int:
        """Return the number of such acts."""
        with self._database.read() as connection:
            return connection.scalar(select(func.count()).select_from(AUDIT).where(*_which(who, act, refused))) or 0


def _which(who: str, act: str, refused: bool | None) -> list[ColumnElement[bool]]:
    wanted = [AUDIT.c.who == who] * bool(who) + [AUDIT.c.act == act] * bool(act)
    return wanted + ([] if refused is None else [AUDIT.c.refused.is_(refused)])
