"""Make a record's row of figures, in the transaction that keeps the record."""

from __future__ import annotations

import logging
import time
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from orchestrator.analysis.figures import FIGURES_VERSION, figures_of
from orchestrator.errors import Unreadable
from orchestrator.ledger.queries import jobs_by_id
from orchestrator.ledger.tables import FIGURES
from orchestrator.model.job import AnyJob
from orchestrator.model.record import Outcome, Record

from . import packing

log = logging.getLogger(__name__)

LONGEST_ERROR = 500
PARTS = ("body", "per_layer", "predictions")


def add(connection: Connection, record: Record) -> None:
    """Figures that cannot be made cost no record: their row says why."""
    put(connection, columns(record, jobs_by_id(connection, [record.job_id]).get(record.job_id)))


def columns(record: Record, job: AnyJob | None) -> dict[str, Any]:
    """The row of a record's figures, or of the reason why there are none. `job`: None where it cannot be read."""
    try:
        if job is None:
            raise Unreadable("its job cannot be read, and so nothing is known of its cell")
        figures = figures_of(record, job.cell, sustained=job.sampling.mode == "sustained")
        made = {
            "median_ms": figures.times.median_ms if figures.times and record.outcome is Outcome.OK else None,
            "error": "",
            "body": packing.body(figures),
            "per_layer": packing.apart(figures.per_layer),
            "predictions": packing.apart(figures.predictions),
        }
    except MemoryError:
        raise
    except Exception as e:
        made = _fault(record, e)
    return {**_key(record), **made}


def put(connection: Connection, row: dict[str, Any]) -> None:
    """Store a row, in the place of an older one."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(FIGURES).values(**row)
    key = [column.name for column in FIGURES.primary_key]
    changed = {name: statement.excluded[name] for name in row if name not in key}
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=changed))


def _key(record: Record) -> dict[str, Any]:
    return {
        "job_id": record.job_id,
        "attempt": record.attempt,
        "version": FIGURES_VERSION,
        "experiment_id": record.experiment_id,
        "cell_id": record.cell_id,
        "serial": record.device.serial,
        "source": record.source,
        "outcome": record.outcome,
        "started_at": record.started_at,
        "kept_at": time.time(),
    }


def _fault(record: Record, error: Exception) -> dict[str, Any]:
    words = f"{type(error).__name__}: {error}".replace("\0", "?").encode(errors="replace").decode()[:LONGEST_ERROR]
    log.error("event=no_figures job=%s attempt=%d error=%s", record.job_id, record.attempt, words.replace("\n", " "))
    return {"median_ms": None, "error": words, **dict.fromkeys(PARTS)}
