"""Read each row as the farm would, and compare what it says twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Table

from orchestrator.figures import FIGURES_VERSION
from orchestrator.ledger.figures import packing
from orchestrator.ledger.guard.column_types import misfit
from orchestrator.ledger.packed import read_row, unpack
from orchestrator.ledger.queue.lanes import candidates_of
from orchestrator.ledger.records import stored
from orchestrator.ledger.rows import AnyRow
from orchestrator.ledger.templates import JobReader
from orchestrator.model.errors import Unreadable
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Experiment

from .fault import PUT_BACK, RECOMPUTE, Fault

Check = Callable[[Any], None]
"""Raises where a row cannot be read, or contradicts itself."""
EXCLUSIONS = TypeAdapter(list[Exclusion])


def faults(connection: Connection, table: Table, found: Sequence[AnyRow]) -> Iterator[Fault]:
    """Yield the faults of rows of one table with all their columns."""
    key = [column.name for column in table.primary_key]
    remedy = RECOMPUTE if table.name == "figures" else PUT_BACK
    check = _job_check(connection, found) if table.name == "jobs" else READERS.get(table.name)
    for row in found:
        name = " ".join(str(row._mapping[column]) for column in key)
        try:
            read_row(name, partial(_check, check, table, row))
        except Unreadable as e:
            yield Fault(table.name, name, str(e.args[0]).replace(f"{name} in the ledger ", "", 1), remedy)
        if table.name == "figures" and (note := _of_figures(row)):
            yield Fault(table.name, name, note, "`farm ledger recompute`", harmless=True)


def _check(check: Check | None, table: Table, row: AnyRow) -> None:
    for name, value in row._mapping.items():
        if misfit(table.c[name].type, value):
            raise ValueError(f"{name} is {value!r:.100}")
    if check is not None:
        check(row)


def _same(row: AnyRow, said: Mapping[str, object]) -> None:
    for name, value in said.items():
        if (column := row._mapping[name]) != value:
            raise ValueError(f"{name} is {column!r}, and its content says {value!r}")


def _experiment(row: AnyRow) -> None:
    Experiment.model_validate_json(row.spec)
    EXCLUSIONS.validate_json(row.exclusions)


def _choice(row: AnyRow) -> None:
    candidates = candidates_of(row.candidates)
    digest = hashlib.sha256(row.candidates.encode()).hexdigest()
    _same(row, {"candidate_count": len(candidates), "digest": digest})


def _template(row: AnyRow) -> None:
    if not isinstance(json.loads(unpack(row.body)), dict):
        raise ValueError("it is no object")


def _job_check(connection: Connection, found: Sequence[AnyRow]) -> Check:
    """One reader for all, or, where it stumbles over one of them, one for each."""
    try:
        shared = JobReader(connection, found)
    except (ValueError, LookupError, TypeError):
        shared = None

    def check(row: AnyRow) -> None:
        (shared or JobReader(connection, [row])).read(row)

    return check


def _attempt(row: AnyRow) -> None:
    if (row.ended_at is None) != (row.outcome == ""):
        raise ValueError("it has ended without an outcome, or the other way round")


def _record(row: AnyRow) -> None:
    if not row.body:
        return  # pruned
    record = stored(row.body)
    names = ("job_id", "attempt", "token", "experiment_id", "cell_id", "outcome", "started_at")
    _same(row, {name: getattr(record, name) for name in names} | {"serial": record.device.serial})


def _figures(row: AnyRow) -> None:
    if row.version == FIGURES_VERSION and row.body is not None:
        figures = packing.unpacked(row)
        names = ("job_id", "attempt", "experiment_id", "cell_id", "serial", "outcome", "started_at")
        _same(row, {name: getattr(figures, name) for name in names})
        if row.brief is not None and row.brief != packing.parts(figures)["brief"]:
            raise ValueError("what it says in brief is not what its figures say")


def _of_figures(row: AnyRow) -> str:
    if row.version != FIGURES_VERSION:
        return f"of version {row.version}, this is {FIGURES_VERSION}: made anew when it is asked for"
    return f"could not be made: {row.error}" if row.body is None else ""


def _dead_record(row: AnyRow) -> None:
    _same(row, {"id": hashlib.sha256(row.body).hexdigest()[:16]})


READERS: dict[str, Check] = {
    "experiments": _experiment,
    "choices": _choice,
    "templates": _template,
    "attempts": _attempt,
    "records": _record,
    "figures": _figures,
    "dead_records": _dead_record,
}
"""Readers by table; of the other tables every column is read, and nothing more."""
