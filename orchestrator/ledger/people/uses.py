"""Note when secrets were used, beside the requests that show them: a request never waits for the ledger's writer."""

from __future__ import annotations

import logging
import threading
import time

from sqlalchemy import Table, bindparam, update

from orchestrator.ledger.database import Database
from orchestrator.model.errors import FarmError

log = logging.getLogger(__name__)
USED_S = 60.0
"""The time between two notes that a secret was used: else each request would write."""
GATHERED_S = 1.0
"""The time for which notes are gathered into one transaction."""


class Uses:
    """Notes on the rows of one table, by their id. Threads may share it. What a process that dies has not written is
    lost: only when a secret was used last."""

    def __init__(self, database: Database, table: Table) -> None:
        self._database, self._table = database, table
        self._lock = threading.Lock()
        self._noted: dict[str, float] = {}
        self._writes = False

    def note(self, name: str, before: float | None) -> None:
        """Note that a secret is used now. `before`: its last use as the ledger has it (Unix time), None: none."""
        now = time.time()
        if before is not None and before >= now - USED_S:
            return
        with self._lock:
            self._noted.setdefault(name, now)
            if not self._writes:
                self._writes = True
                threading.Thread(target=self._write, name="uses", daemon=True).start()

    def _write(self) -> None:
        time.sleep(GATHERED_S)
        with self._lock:
            noted, self._noted, self._writes = self._noted, {}, False
        statement = update(self._table).where(self._table.c.id == bindparam("name")).values(used_at=bindparam("at"))
        try:
            with self._database.write() as connection:
                connection.execute(statement, [{"name": name, "at": at} for name, at in noted.items()])
        except FarmError as e:
            log.warning("event=uses_not_noted uses=%d error=%s", len(noted), e)
