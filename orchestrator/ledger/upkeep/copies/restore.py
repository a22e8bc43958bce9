"""Put the ledger back from a copy. No fencing token that was ever handed out is handed out again.

A copy is older than what the farm has done since: its newest token too. Tokens go on from the larger one of the copy's
and the present ledger's, and a wide margin above, because the present one may be gone. `restored` among the counters
is that number: the scheduler sees by it that what hosts were told of their records is no longer so.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import make_url

from orchestrator.ledger.database import JUMP, Database
from orchestrator.ledger.tables import METADATA
from orchestrator.model.errors import FarmError, SetupError
from orchestrator.model.live.lease import LARGEST_TOKEN
from orchestrator.system.private_files import make_file, settle

from . import postgres, sqlite
from .backup import backup

RESTORED = "restored"


@dataclass(frozen=True)
class Restored:
    """The ledger after it was put back."""

    token: int
    """The number from which tokens go on."""
    before: Path | None
    """The place of the ledger that was there before; None: there was none."""


def restore(url: str, file: Path, folder: Path) -> Restored:
    """Put the ledger of this URL back from a copy; the caller sees to it that no farm uses it. `folder`: for the copy
    of the present PostgreSQL ledger.

    Raises SetupError, and changes nothing, where the copy is not whole, of a newer version, or of the other database.
    """
    stamp = time.strftime("before-restore-%Y%m%d-%H%M%S")
    if make_url(url).get_backend_name() == "sqlite":
        return _sqlite(url, file, stamp)
    return _postgres(url, file, folder / f"ledger.{stamp}.dump")


def _sqlite(url: str, file: Path, stamp: str) -> Restored:
    facts, ledger = sqlite.facts(file), sqlite.path_of(url)
    there = ledger.exists()
    if there:
        sqlite.close_for_good(ledger)
    token = _next(max(facts.token or 0, _token_of(ledger) if there else 0))
    partial = ledger.with_name(ledger.name + ".restoring")
    try:
        partial.unlink(missing_ok=True)
        make_file(partial)
        shutil.copyfile(file, partial)
        with closing(sqlite3.connect(partial)) as connection, connection:
            for sql in _tokens("counters", str(token)):
                connection.execute(sql)
        with closing(Database(f"sqlite:///{partial}")) as database, database.read():
            pass  # older tables are upgraded
        sqlite.close_for_good(partial)
        before = _set_aside(ledger, stamp) if there else None
        settle(partial, ledger)
    finally:
        partial.unlink(missing_ok=True)
    return Restored(token, before)


def _set_aside(ledger: Path, stamp: str) -> Path:
    """Give the present ledger a second name: there is no moment without a ledger, which `farm up` would make anew."""
    before = ledger.with_name(f"{ledger.name}.{stamp}")
    for end in ("-wal", "-shm"):  # of a damaged one
        with suppress(FileNotFoundError):
            ledger.with_name(ledger.name + end).rename(before.with_name(before.name + end))
    try:
        os.link(ledger, before)
    except OSError:  # a file system without links
        shutil.copyfile(ledger, before)
        before.chmod(0o600)
    return before


def _token_of(ledger: Path) -> int:
    """The newest token of the present ledger; 0 where it cannot be read: the margin is for that."""
    try:
        return sqlite.facts(ledger).token or 0
    except FarmError:
        return 0


def _postgres(url: str, file: Path, before: Path) -> Restored:
    postgres.facts(file)
    with closing(Database(url)) as database, database.read() as connection:
        present = int(connection.scalar(text("SELECT value FROM counters WHERE name = 'token'")) or 0)
        mine = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        others = connection.scalar(text(f"SELECT count(*) FROM pg_stat_activity WHERE {mine}"))  # noqa: S608
        schema = connection.scalar(text("SELECT quote_ident(current_schema())"))
    if others:
        remedy = "end the farm and whatever else uses it, then put the ledger back"
        raise SetupError(f"{others} other connections use this database", remedy=remedy)
    _next(present)
    backup(url, before)
    tables = ", ".join(f"{schema}.{name}" for name in (*METADATA.tables, "alembic_version"))
    token = f"(SELECT GREATEST(value, {present}) + {JUMP} FROM {schema}.counters WHERE name = 'token')"  # noqa: S608
    script = before.with_suffix(".sql")
    try:
        make_file(script)
        postgres.put_back(url, file, script, [f"DROP TABLE {tables}"], _tokens(f"{schema}.counters", token))
    finally:
        script.unlink(missing_ok=True)
    with closing(Database(url)) as database, database.read() as connection:  # older tables are upgraded
        now = int(connection.scalar(text("SELECT value FROM counters WHERE name = 'token'")) or 0)
    return Restored(now, before)


def _tokens(counters: str, token: str) -> list[str]:
    """Statements that let tokens go on from there. `token`: a number, or what selects it."""
    return [
        f"INSERT INTO {counters} (name, value) VALUES ('{RESTORED}', {token}) "  # noqa: S608  (words of this file)
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        f"UPDATE {counters} SET value = (SELECT value FROM {counters} AS c WHERE c.name = '{RESTORED}') "  # noqa: S608
        "WHERE name = 'token'",
    ]


def _next(token: int) -> int:
    if token > LARGEST_TOKEN:
        raise SetupError(f"the newest fencing token is {token}: there is no room above it", remedy="start a new ledger")
    return token + JUMP
