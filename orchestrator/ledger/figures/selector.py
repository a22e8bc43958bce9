"""Say which blocks are meant, of records and of their figures alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Table, and_

Selector = Mapping[str, str | Sequence[str]]
"""Column -> its value, or several: of `job_id`, `experiment_id`, `serial`, `cell_id`, `source`."""


def matching(table: Table, of: Selector) -> ColumnElement[bool]:
    return and_(*(table.c[name] == v if isinstance(v, str) else table.c[name].in_(v) for name, v in of.items()))
