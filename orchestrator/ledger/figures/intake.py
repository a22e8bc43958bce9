"""Make a record's row of figures, in the transaction that keeps the record."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.dialects import sqlite

from orchestrator.figures import FIGURES_VERSION, BlockFigures, figures_of
from orchestrator.ledger.database import execute_many
from orchestrator.ledger.tables import FIGURES
from orchestrator.ledger.templates import Measured
from orchestrator.model.errors import Unreadable
from orchestrator.model.record import Outcome, Record

from . import packing

log = logging.getLogger(__name__)

LONGEST_ERROR = 500
PARTS = ("body", "per_layer", "predictions", "brief")
_OK = Outcome.OK  # members of an enum are slow to look up


def columns(record: Record, job: Measured | None) -> dict[str, Any]:
    """The row of a record's figures, or of the reason why there are none: figures that cannot be made cost no record.
    `job`: what its job measures; None where that cannot be read."""
    try:
        if job is None:
            raise Unreadable("its job cannot be read, and so nothing is known of its cell")
        return row_of(figures_of(record, job.cell, sustained=job.mode == "sustained"))
    except MemoryError:
        raise
    except Exception as e:
        return {**_key(record, record.device.serial), **_fault(record, e)}


def row_of(figures: BlockFigures) -> dict[str, Any]:
    """The row of a block's figures."""
    return {
        **_key(figures, figures.serial),
        "median_ms": figures.times.median_ms if figures.times and figures.outcome is _OK else None,
        "error": "",
        **packing.parts(figures),
    }


def put(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Store rows, in the place of older ones."""
    execute_many(connection, _upsert(connection.dialect.name), rows)


@cache
def _upsert(dialect: str) -> Executable:
    statement: Any = sqlite.insert(FIGURES)
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # loading it takes a moment

        statement = postgresql.insert(FIGURES)
    key = [column.name for column in FIGURES.primary_key]
    changed = {column.name: statement.excluded[column.name] for column in FIGURES.columns if column.name not in key}
    found: Executable = statement.on_conflict_do_update(index_elements=key, set_=changed)
    return found


def _key(block: Record | BlockFigures, serial: str) -> dict[str, Any]:
    return {
        "job_id": block.job_id,
        "attempt": block.attempt,
        "version": FIGURES_VERSION,
        "experiment_id": block.experiment_id,
        "cell_id": block.cell_id,
        "serial": serial,
        "source": block.source,
        "outcome": block.outcome,
        "started_at": block.started_at,
        "kept_at": time.time(),
    }


def _fault(record: Record, error: Exception) -> dict[str, Any]:
    words = f"{type(error).__name__}: {error}".replace("\0", "?").encode(errors="replace").decode()[:LONGEST_ERROR]
    log.error("event=no_figures job=%s attempt=%d error=%s", record.job_id, record.attempt, words.replace("\n", " "))
    return {"median_ms": None, "error": words, **dict.fromkeys(PARTS)}
