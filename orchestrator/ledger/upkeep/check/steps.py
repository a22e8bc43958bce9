"""Go through the whole ledger, a batch a transaction, so that the farm may run meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, Table, select, tuple_

from orchestrator.ledger.database import Database
from orchestrator.ledger.guard.row_guard import UNGUARDED
from orchestrator.ledger.tables import METADATA
from orchestrator.model.errors import ServiceDown

from . import relations, rows, storage
from .fault import PUT_BACK, Fault

BATCH = 500


@dataclass(frozen=True)
class Looked:
    """The findings of a step."""

    at: str
    """Name of a table, or of what was checked."""
    rows: int
    faults: tuple[Fault, ...]


def check(database: Database) -> Iterator[Looked]:
    """Each step as it is done. What cannot be read is a fault, and the steps behind it are gone through."""
    for at, find in storage.STEPS.items():
        yield _step(database, at, find)
    for table in METADATA.sorted_tables:
        yield from _table(database, table)
    for relation in relations.RELATIONS:
        yield _step(database, relation.table, partial(relations.faults, relation))


def _step(database: Database, at: str, find: Callable[[Connection], Iterable[Fault]]) -> Looked:
    try:
        with database.read() as connection:
            return Looked(at, 0, tuple(find(connection)))
    except ServiceDown as e:
        return Looked(at, 0, (_unread(at, "", e),))


def _table(database: Database, table: Table) -> Iterator[Looked]:
    last: tuple[object, ...] | None = None
    while True:
        try:
            with database.read() as connection:
                count, last, faults = _batch(connection, table, last)
        except ServiceDown as e:
            yield Looked(table.name, 0, (_unread(table.name, f"behind {last}" if last else "", e),))
            return
        yield Looked(table.name, count, faults)
        if count < BATCH:
            return


def _batch(
    connection: Connection, table: Table, after: tuple[object, ...] | None
) -> tuple[int, tuple[object, ...] | None, tuple[Fault, ...]]:
    """The number of rows, the key of the last one, and what is wrong."""
    key = list(table.primary_key)
    statement = select(table).order_by(*key).limit(BATCH)
    if after is not None:
        statement = statement.where(tuple_(*key) > tuple_(*after))
    found = connection.execute(statement, execution_options={UNGUARDED: True}).all()
    faults = tuple(rows.faults(connection, table, found))
    return len(found), tuple(found[-1]._mapping[column.name] for column in key) if found else after, faults


def _unread(table: str, row: str, error: ServiceDown) -> Fault:
    return Fault(table, row, f"cannot be read: {error.args[0]}", PUT_BACK)
