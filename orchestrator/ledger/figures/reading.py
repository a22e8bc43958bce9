"""Read rows of figures; what cannot be read is logged and left out."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import chain
from typing import TypeVar

from sqlalchemy import Connection, case, select

from orchestrator.figures import FIGURES_VERSION, BlockFigures
from orchestrator.figures.brief import COLUMNS, Brief
from orchestrator.ledger.packed import readable
from orchestrator.ledger.rows import AnyRow
from orchestrator.ledger.tables import FIGURES

from . import packing
from .selector import Selector, matching

log = logging.getLogger(__name__)
T = TypeVar("T")
AT_ONCE = 1000
"""Rows fetched together: one by one takes twice as long."""
UNREADABLE = (ValueError, TypeError, LookupError, zlib.error)


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
        if (found := _found(row, packing.unpacked)) is not None:
            yield found


def briefs(connection: Connection, of: Selector) -> Iterator[Brief]:
    """Read the rows as `Brief`: only their main columns."""
    columns = [FIGURES.c[name] for name in (*COLUMNS, "attempt", "error", "brief")]
    body = case((FIGURES.c.brief.is_(None), FIGURES.c.body), else_=None).label("body")
    statement = select(*columns, body).where(matching(FIGURES, of), FIGURES.c.version == FIGURES_VERSION)
    read = partial(packing.brief, known={})
    for row in chain.from_iterable(connection.execute(statement).partitions(AT_ONCE)):
        try:
            yield read(row)
        except UNREADABLE:
            if (found := _found(row, read)) is not None:  # it says which row, and what is wrong with it
                yield found


def _found(row: AnyRow, read: Callable[[AnyRow], T]) -> T | None:
    if row.error:
        log.warning("event=without_figures job=%s attempt=%d error=%s", row.job_id, row.attempt, row.error)
        return None
    return readable(f"the figures of attempt {row.attempt} at job {row.job_id}", partial(read, row))
