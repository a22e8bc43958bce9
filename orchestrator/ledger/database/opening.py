"""Open a database: who may read its file, its pool of connections, how its transactions begin."""

from __future__ import annotations

import sqlite3
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from orchestrator.model.errors import SetupError
from orchestrator.system.private_files import make_file, make_private

BUSY_MS = 10_000
"""The time for which a SQLite writer waits for another."""
SWITCH_RETRY_S = 0.01
SYNCHRONOUS = "FULL"
"""A commit is on the disk when it returns: by then the receipt lets a host drop its copy of a record. WAL with
less may roll back after a power cut, fencing tokens too."""
POOL, BEYOND = 16, 24
"""Connections that a process keeps, and those that it opens for a moment: the threads of the pages, forty, ask at the
same time, and to open one costs more than what is asked."""
CONNECT_S = 10
"""The time that PostgreSQL may take to answer at first, unless the URL says `connect_timeout`."""


def engine_of(url: str, *, checked: bool = True) -> Engine:
    """Return the engine of a URL; `checked`: keys that rows name must be there. Raises SetupError."""
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            _make_private(Path(parsed.database))
        if parsed.get_backend_name() == "postgresql":
            told = {"connect_timeout": str(CONNECT_S), "client_encoding": "utf8"}  # a database in C has no encoding
            parsed = parsed.set(query={**told, **parsed.query})
        pool = {} if parsed.database in (None, "", ":memory:") else {"pool_size": POOL, "max_overflow": BEYOND}
        engine = create_engine(parsed, pool_pre_ping=parsed.get_backend_name() != "sqlite", **pool)
    except (ArgumentError, NoSuchModuleError, ImportError) as e:
        raise SetupError(
            f"the ledger's URL cannot be used: {e}",
            remedy="FARM_LEDGER_URL is sqlite:///PATH or postgresql+psycopg://USER@HOST/DATABASE",
        ) from e
    except OSError as e:
        raise SetupError(
            f"the ledger's folder cannot be made: {e}",
            remedy="give a folder that you may write with --state or FARM_STATE",
        ) from e
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", partial(_configure_sqlite, checked=checked))
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_private(file: Path) -> None:
    """A new ledger, and the folder that is made for it, are this user's alone."""
    if not file.parent.exists():
        make_private(file.parent)
    if str(file) != ":memory:" and not file.exists():
        make_file(file)


def _configure_sqlite(connection: Any, _record: Any, *, checked: bool) -> None:
    connection.isolation_level = None  # transactions begin where SQLAlchemy says, see _begin_sqlite
    try:
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # a damaged text costs its row alone
        connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        _use_write_ahead_log(connection)
        for pragma in (f"synchronous={SYNCHRONOUS}", f"foreign_keys={'ON' if checked else 'OFF'}"):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()  # the pool does not know it yet
        raise


def _use_write_ahead_log(connection: Any) -> None:
    """The first connections to a new file switch it at the same moment. This switch turns a reader into a writer, for
    which SQLite does not wait however long its `busy_timeout` is: it is tried again here."""
    deadline = time.monotonic() + BUSY_MS / 1e3
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as e:
            if e.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(SWITCH_RETRY_S)


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes the write lock at once: a reader that turns writer cannot wait and would fail."""
    options = connection.get_execution_options()
    if options.get("farm_write", False):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif not options.get("farm_bare", False):
        driver: Any = connection.connection.driver_connection
        driver.execute("BEGIN")  # takes no lock: nothing can be in its way, and SQLAlchemy takes three times as long


class AtOnce:
    """A connection to a SQLite file for small questions: no writer keeps its readers, and no pool's threads do."""

    def __init__(self, engine: Engine) -> None:
        self._file, self._lock = Path(engine.url.database or "").absolute(), threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def finds(self, query: str) -> bool | None:
        """Return whether a query finds a row; None: not without waiting."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._connection is None:
                address = f"{self._file.as_uri()}?mode=ro"
                self._connection = sqlite3.connect(address, uri=True, timeout=0, check_same_thread=False)
            return bool(self._connection.execute(query).fetchall())
        except sqlite3.Error:
            return None
        finally:
            self._lock.release()

    def close(self) -> None:
        """End it; it begins anew where somebody asks again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
