"""Check the version of the ledger's tables in a database, create them, or bring older ones to this version."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, inspect, select

from orchestrator.model.errors import Unreadable

from .tables import COUNTERS, METADATA, SCHEMA_VERSION

FIRST_VERSION = 21
"""The version of release 0.1.0, from which on tables are brought along."""
REMEDY = "move it aside and start anew, or give another folder with --state (or database with FARM_LEDGER_URL)"


@dataclass(frozen=True)
class Fault:
    """A fault of a database, and what to do."""

    what: str
    remedy: str = REMEDY


EMPTY = Fault("it holds no tables yet")
OUTDATED = Fault("its tables are of an older version")
_REVISION = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""Alembic's table; the version is kept among the counters too, where a pocketfarm from before Alembic looks for it."""


def fault(connection: Connection) -> Fault | None:
    """None where the tables are there in this version; `EMPTY` where none is, `OUTDATED` where they can be upgraded."""
    # the version before the columns: another process may upgrade them meanwhile
    version = _version(connection) if inspect(connection).has_table(COUNTERS.name) else None
    found = _columns(connection)
    if not found.keys() & METADATA.tables.keys():
        return EMPTY
    if version is None and COUNTERS.name in found:
        version = _version(connection)
    if version is not None and FIRST_VERSION <= version < SCHEMA_VERSION:
        return OUTDATED
    if version != SCHEMA_VERSION:
        return _of_another_version(version)
    lacking = [
        f"{table.name}.{column.name}"
        for table in METADATA.sorted_tables
        for column in table.columns
        if column.name not in found.get(table.name, set())
    ]
    if lacking:
        return Fault(
            f"its tables say version {SCHEMA_VERSION}, but lack {', '.join(lacking)}: written by another build"
        )
    return None


def create(connection: Connection) -> None:
    """Make the tables of this version in an empty database."""
    METADATA.create_all(connection)
    start = {"schema": SCHEMA_VERSION, "token": 0, "experiment": 0, "change": 0}
    connection.execute(insert(COUNTERS), [{"name": name, "value": value} for name, value in start.items()])
    _REVISION.create(connection)
    connection.execute(insert(_REVISION).values(version_num=str(SCHEMA_VERSION)))


def upgrade(connection: Connection) -> tuple[int, int]:
    """Bring older tables to this version, in the caller's transaction; the versions before and after."""
    from .migrations import upgrade as run  # Alembic is read where there is something to upgrade, and not else

    if connection.dialect.name == "postgresql":  # SQLite's writer is alone already
        connection.exec_driver_sql("LOCK TABLE counters IN ACCESS EXCLUSIVE MODE")
    before = _version(connection)
    if before is None or before >= SCHEMA_VERSION:
        return SCHEMA_VERSION, SCHEMA_VERSION  # another process was first
    run(connection, holds="" if _REVISION.name in _columns(connection) else str(before))
    return before, SCHEMA_VERSION


def _columns(connection: Connection) -> dict[str, set[str]]:
    """Table -> names of its columns, of everything in the database."""
    found = inspect(connection).get_multi_columns()
    return {name: {column["name"] for column in columns} for (_, name), columns in found.items()}


def _version(connection: Connection) -> int | None:
    """Return the version of the counter or, where that is there and cannot be read, of Alembic's table."""
    is_it = COUNTERS.c.name == "schema"
    try:
        return connection.scalar(select(COUNTERS.c.value).where(is_it))
    except Unreadable:
        told = connection.scalar(select(_REVISION.c.version_num)) or ""
        return int(told) if told.isdecimal() else None


def fault_of(version: int | None) -> Fault | None:
    """None where tables of this version can be used, or brought to this one."""
    return None if version is not None and FIRST_VERSION <= version <= SCHEMA_VERSION else _of_another_version(version)


def _of_another_version(version: int | None) -> Fault:
    if version is None:
        return Fault("it holds tables of the ledger's names without a version: another program's, or damaged")
    versions = f"its tables have version {version}, this pocketfarm knows {SCHEMA_VERSION}"
    if version > SCHEMA_VERSION:
        return Fault(f"{versions}: a newer pocketfarm wrote it", f"update pocketfarm on this host, or {REMEDY}")
    way = "start a farm on it once with the last commit before release 0.1.0 (CHANGELOG.md), which brings it along"
    return Fault(f"{versions}: a pocketfarm from before release 0.1.0 wrote it", f"{way}; or {REMEDY}")
