"""Keep public links: the SHA-256 of their secret, what they show, and until when."""

from __future__ import annotations

import time

from sqlalchemy import Connection, insert, select, update

from orchestrator.ledger.database import Database
from orchestrator.ledger.rows import AnyRow
from orchestrator.model.rights import Link

from .tables import LINKS
from .tokens import digest, new_secret
from .uses import Uses


class Links:
    """Links of a ledger; one transaction a call. All methods raise ServiceDown if it is away."""

    def __init__(self, database: Database) -> None:
        self._database, self._uses = database, Uses(database, LINKS)

    def make(self, target: str, project: str, who: str, note: str, ends_at: float) -> tuple[str, str]:
        """Return the id and the secret of a new link; nobody can read the secret again."""
        name, text = new_secret()
        row = {"id": name, "sha256": digest(text), "target": target, "project": project, "who": who[:100], "note": note}
        with self._database.write() as connection:
            connection.execute(insert(LINKS).values(**row, made_at=time.time(), ends_at=ends_at))
        return name, text

    def revoke(self, name: str) -> None:
        with self._database.write() as connection:
            mine = (LINKS.c.id == name) & LINKS.c.revoked_at.is_(None)
            connection.execute(update(LINKS).where(mine).values(revoked_at=time.time()))

    def every(self) -> list[Link]:
        """Return all links, the newest first, those that ended among them."""
        with self._database.read() as connection:
            return [
                _link(row) for row in connection.execute(select(LINKS).order_by(LINKS.c.made_at.desc(), LINKS.c.id))
            ]

    def one(self, name: str) -> Link | None:
        with self._database.read() as connection:
            row = connection.execute(select(LINKS).where(LINKS.c.id == name)).first()
            return None if row is None else _link(row)

    def shown(self, text: str) -> Link | None:
        """Return the link of a secret; None: there is none, or it counts no more. Notes that it was used."""
        now = time.time()
        counts = LINKS.c.revoked_at.is_(None) & (LINKS.c.ends_at > now)
        with self._database.read() as connection:
            row = connection.execute(select(LINKS).where(LINKS.c.sha256 == digest(text), counts)).first()
        if row is None:
            return None
        self._uses.note(row.id, row.used_at)
        return _link(row)


def revoke_links_of(connection: Connection, who: str, now: float) -> None:
    """Revoke all links that somebody made."""
    connection.execute(update(LINKS).where(LINKS.c.who == who, LINKS.c.revoked_at.is_(None)).values(revoked_at=now))


def _link(row: AnyRow) -> Link:
    told = (row.id, row.target, row.project, row.who, row.note, row.made_at, row.ends_at, row.revoked_at, row.used_at)
    return Link(*told)
