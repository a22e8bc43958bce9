"""Keep runs of queueing experiments: each is written once, and never changed. One transaction a call."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from sqlalchemy import insert, select

from orchestrator.ledger.database import Database
from orchestrator.ledger.packed import pack_json, read_row, readable_rows, unpack
from orchestrator.ledger.rows import AnyRow
from orchestrator.ledger.tables import QUEUE_RUNS
from orchestrator.model.errors import UnknownName

LATEST = "latest"


@dataclass(frozen=True)
class QueueRun:
    """A run as a list shows it; its bodies are read by `QueueRuns.body`."""

    id: str
    name: str
    began_at: float
    source: str
    requests: int
    summary: bytes
    """JSON of what was found in all."""


@dataclass(frozen=True)
class QueueRunBody:
    """All that is kept of a run."""

    about: bytes
    """JSON: the spec, the servers, what befell them, the course."""
    requests: bytes
    """Columns of all requests, packed by whoever wrote them."""
    readings: bytes
    """Columns of what the phones' samplers told; likewise."""


class QueueRuns:
    """Every method raises ServiceDown where the database is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, name: str, began_at: float, source: str, requests: int, summary: bytes, body: QueueRunBody) -> str:
        """Store a run; its id: the experiment's name and when it began."""
        base = f"{name}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(began_at))}"
        with self._database.write() as connection:
            taken = set(connection.scalars(select(QUEUE_RUNS.c.id).where(QUEUE_RUNS.c.id.startswith(base))))
            run_id = next(each for n in range(len(taken) + 1) if (each := f"{base}-{n}" if n else base) not in taken)
            row = {"id": run_id, "name": name, "began_at": began_at, "source": source, "requests": requests}
            packed = {"summary": pack_json(summary), "about": pack_json(body.about)}
            columns = {"request_columns": body.requests, "reading_columns": body.readings}
            connection.execute(insert(QUEUE_RUNS).values(**row, **packed, **columns))
        return run_id

    def listed(self, name: str | None = None, limit: int | None = None) -> list[QueueRun]:
        """The newest first, of one experiment or all."""
        columns = [QUEUE_RUNS.c[each] for each in ("id", "name", "began_at", "source", "requests", "summary")]
        wanted = select(*columns).order_by(QUEUE_RUNS.c.began_at.desc(), QUEUE_RUNS.c.id.desc()).limit(limit)
        if name is not None:
            wanted = wanted.where(QUEUE_RUNS.c.name == name)
        with self._database.read() as connection:
            return readable_rows("queueing run", connection.execute(wanted).all(), _run)

    def find(self, name: str) -> QueueRun:
        """Return a run by id, by the experiment's name (its newest), or `latest`. Raises UnknownName."""
        runs = self.listed()
        found = next((each for each in runs if each.id == name), None)
        found = found or next((each for each in runs if name in (each.name, LATEST)), None)
        if found is None:
            raise UnknownName(f"there is no queueing run {name!r}", remedy="`farm queue list` shows them")
        return found

    def body(self, run_id: str) -> QueueRunBody:
        """Raises UnknownName."""
        columns = [QUEUE_RUNS.c[each] for each in ("about", "request_columns", "reading_columns")]
        with self._database.read() as connection:
            row = connection.execute(select(*columns).where(QUEUE_RUNS.c.id == run_id)).first()
        if row is None:
            raise UnknownName(f"there is no queueing run {run_id!r}", remedy="`farm queue list` shows them")
        about = read_row(f"queueing run {run_id}", partial(unpack, row.about))
        return QueueRunBody(about, row.request_columns, row.reading_columns)


def _run(row: AnyRow) -> QueueRun:
    return QueueRun(row.id, row.name, row.began_at, row.source, row.requests, unpack(row.summary))
