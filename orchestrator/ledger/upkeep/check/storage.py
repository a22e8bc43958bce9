"""Ask the database whether its file is whole, and compare the versions that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlalchemy import Connection, text

from orchestrator.ledger.incoming.pieces import coming
from orchestrator.ledger.tables import SCHEMA_VERSION

from .fault import PUT_BACK, Fault

MOST = 1000
"""Faults of the file that SQLite names."""


def _file(connection: Connection) -> Iterator[Fault]:
    if connection.dialect.name == "sqlite":
        for (line,) in connection.execute(text(f"PRAGMA integrity_check({MOST})")).all():
            if line != "ok":
                yield Fault("file", "", line, PUT_BACK)


def _foreign_keys(connection: Connection) -> Iterator[Fault]:
    """PostgreSQL keeps them by itself."""
    if connection.dialect.name == "sqlite":
        under_way = bool(coming(connection))
        if under_way:
            what = "an import is under way, or was cut off: the next one removes what it left"
            yield Fault("experiments", "", what, "`farm import`, `farm ledger adopt`", harmless=True)
        for table, row, parent, _ in connection.execute(text("PRAGMA foreign_key_check")).all():
            if under_way and parent == "experiments":
                continue
            yield Fault(table, f"rowid {row}", f"names a row of {parent} that is not there", PUT_BACK)


def _versions(connection: Connection) -> Iterator[Fault]:
    for version in connection.scalars(text("SELECT version_num FROM alembic_version")).all():
        if version != str(SCHEMA_VERSION):
            what = f"the tables say version {SCHEMA_VERSION}, Alembic's table says {version}"
            yield Fault("alembic_version", version, what, PUT_BACK)


STEPS: dict[str, Callable[[Connection], Iterator[Fault]]] = {
    "file": _file,
    "foreign keys": _foreign_keys,
    "alembic_version": _versions,
}
