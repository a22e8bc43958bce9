"""Check the version of the ledger's tables in a database, or create them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, insert, inspect, select

from .tables import COUNTERS, LATER, METADATA, SCHEMA_VERSION

REMEDY = "move it aside and start anew, or give another folder with --state (or database with FARM_LEDGER_URL)"


@dataclass(frozen=True)
class Fault:
    """What is wrong with a database, and what to do."""

    what: str
    remedy: str = REMEDY


EMPTY = Fault("it holds no tables yet")


def fault(connection: Connection) -> Fault | None:
    """None where the tables are there in this version; `EMPTY` where none is."""
    found = _columns(connection)
    if not found.keys() & METADATA.tables.keys():
        return EMPTY
    version = _version(connection) if COUNTERS.name in found else None
    if version != SCHEMA_VERSION:
        return _of_another_version(version)
    later = {table.name for table in LATER} - found.keys()
    lacking = [
        f"{table.name}.{column.name}"
        for table in METADATA.sorted_tables
        if table.name not in later
        for column in table.columns
        if column.name not in found.get(table.name, set())
    ]
    if lacking:
        return Fault(
            f"its tables say version {SCHEMA_VERSION}, but lack {', '.join(lacking)}: written by another build"
        )
    return None


def is_complete(connection: Connection) -> bool:
    """Whether the tables are there that came later in this version."""
    return {table.name for table in LATER} <= _columns(connection).keys()


def complete(connection: Connection) -> None:
    """Make the tables that came later."""
    METADATA.create_all(connection, tables=LATER)


def create(connection: Connection) -> None:
    """Make the tables of this version in an empty database."""
    METADATA.create_all(connection)
    start = {"schema": SCHEMA_VERSION, "token": 0, "experiment": 0}
    connection.execute(insert(COUNTERS), [{"name": name, "value": value} for name, value in start.items()])


def _columns(connection: Connection) -> dict[str, set[str]]:
    """Table -> names of its columns, of everything in the database."""
    found = inspect(connection).get_multi_columns()
    return {name: {column["name"] for column in columns} for (_, name), columns in found.items()}


def _version(connection: Connection) -> int | None:
    return connection.scalar(select(COUNTERS.c.value).where(COUNTERS.c.name == "schema"))


def _of_another_version(version: int | None) -> Fault:
    if version is None:
        return Fault("it holds tables of the ledger's names without a version: another program's, or damaged")
    versions = f"its tables have version {version}, this pocketfarm knows {SCHEMA_VERSION}"
    if version > SCHEMA_VERSION:
        return Fault(f"{versions}: a newer pocketfarm wrote it", f"update pocketfarm on this host, or {REMEDY}")
    return Fault(f"{versions}: an older pocketfarm wrote it", f"read it with the one that wrote it; {REMEDY}")
