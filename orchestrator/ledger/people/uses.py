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
        self._writer: threading.Timer | None = None
        database.before_close.append(self._end)

    def note(self, name: str, before: float | None) -> None:
        """Note that a secret is used now. `before`: its last use as the ledger has it (Unix time), None: none."""
        now = time.time()
        if before is not None and before >= now - USED_S:
            return
        with self._lock:
            self._noted.setdefault(name, now)
            if self._writer is None:
                self._writer = threading.Timer(GATHERED_S, self._write)
                self._writer.daemon = True
                self._writer.start()

    def _write(self) -> None:
        with self._lock:
            noted, self._noted, self._writer = self._noted, {}, None
        if not noted:
            return
        statement = update(self._table).where(self._table.c.id == bindparam("name")).values(used_at=bindparam("at"))
        try:
            with self._database.write() as connection:
                connection.execute(statement, [{"name": name, "at": at} for name, at in noted.items()])
        except FarmError as e:
            log.warning("event=uses_not_noted uses=%d error=%s", len(noted), e)

    def _end(self) -> None:
        """Write what is noted, and let no thread use the database any more."""
        with self._lock:
            writer = self._writer
        if writer is not None:
            writer.cancel()
            writer.join()
        self._write()
