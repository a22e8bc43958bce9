"""Read rows of figures; what cannot be read is logged and left out."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from functools import partial

from sqlalchemy import Connection, select

from orchestrator.analysis.figures import FIGURES_VERSION, BlockFigures
from orchestrator.ledger.rows import readable
from orchestrator.ledger.tables import FIGURES

from . import packing
from .selector import Selector, matching

log = logging.getLogger(__name__)


def read(
    connection: Connection, of: Selector, *, apart: Collection[packing.Apart] = (), most: int | None = None
) -> Iterator[BlockFigures]:
    """Rows of this version, of the `most` newest blocks. `apart`: which of the fields that they hold apart are read."""
    names = ("job_id", "attempt", "error", "body", *apart)
    statement = select(*(FIGURES.c[name] for name in names))
    statement = statement.where(matching(FIGURES, of), FIGURES.c.version == FIGURES_VERSION)
    if most is not None:
        statement = statement.order_by(FIGURES.c.started_at.desc()).limit(most)
    for row in connection.execute(statement):
        what = f"the figures of attempt {row.attempt} at job {row.job_id}"
        if row.body is None:
            log.warning("event=without_figures job=%s attempt=%d error=%s", row.job_id, row.attempt, row.error)
        elif (found := readable(what, partial(packing.unpacked, row))) is not None:
            yield found
