"""Read rows of figures; what cannot be read is logged and left out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from sqlalchemy import ColumnElement, Connection, select

from orchestrator.analysis.figures import FIGURES_VERSION, BlockFigures
from orchestrator.ledger.rows import readable
from orchestrator.ledger.tables import FIGURES

from . import packing

log = logging.getLogger(__name__)

AT_ONCE = 500


def of_experiment(connection: Connection, experiment_id: str, *, whole: bool = False) -> Iterator[BlockFigures]:
    """Of an experiment's records in no order. `whole`: with what rows hold apart, layers and predictions."""
    yield from _read(connection, FIGURES.c.experiment_id == experiment_id, whole=whole)


def of_jobs(connection: Connection, job_ids: Sequence[str]) -> Iterator[BlockFigures]:
    """Of all attempts at these jobs."""
    for start in range(0, len(job_ids), AT_ONCE):
        yield from _read(connection, FIGURES.c.job_id.in_(job_ids[start : start + AT_ONCE]))


def of_result(
    connection: Connection, experiment_id: str, serial: str, cell_id: str, source: str, most: int
) -> Iterator[BlockFigures]:
    """Of the newest blocks of a cell on a device in one experiment, however they ended."""
    mine = (FIGURES.c.experiment_id == experiment_id) & (FIGURES.c.serial == serial) & (FIGURES.c.cell_id == cell_id)
    yield from _read(connection, mine & (FIGURES.c.source == source), most)


def _read(
    connection: Connection, where: ColumnElement[bool], most: int | None = None, *, whole: bool = False
) -> Iterator[BlockFigures]:
    names = ("job_id", "attempt", "error", "body", *(sorted(packing.APART) if whole else ()))
    statement = select(*(FIGURES.c[name] for name in names)).where(where, FIGURES.c.version == FIGURES_VERSION)
    if most is not None:
        statement = statement.order_by(FIGURES.c.started_at.desc()).limit(most)
    for row in connection.execute(statement):
        what = f"the figures of attempt {row.attempt} at job {row.job_id}"
        if row.body is None:
            log.warning("event=without_figures job=%s attempt=%d error=%s", row.job_id, row.attempt, row.error)
        elif (found := readable(what, partial(packing.unpacked, row))) is not None:
            yield found
