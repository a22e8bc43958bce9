"""Keep public links: the SHA-256 of their secret, what they show, and until when."""

from __future__ import annotations

from sqlalchemy import select

from orchestrator.model.rights import Link

from .kept import Secrets
from .tables import LINKS


class Links(Secrets[Link]):
    made, table, ended = Link, LINKS, LINKS.c.revoked_at

    def make(self, target: str, project: str, who: str, note: str, ends_at: float) -> tuple[str, str]:
        """Return the id and the secret of a new link; nobody can read the secret again."""
        return self._make(target=target, project=project, who=who[:100], note=note, ends_at=ends_at)

    def shown(self, text: str) -> Link | None:
        """Return the link of a secret; None: there is none, or it counts no more. Notes that it was used."""
        with self._database.read() as connection:
            row = self._of(connection, text, select(LINKS))
            if row is None:
                return None
            link = self._told(connection, [row])[0]
        self._note(row)
        return link
