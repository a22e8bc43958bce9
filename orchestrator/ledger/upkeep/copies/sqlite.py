"""Copies of a SQLite ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.engine import make_url

from orchestrator.ledger import schema
from orchestrator.model.errors import ServiceDown, SetupError

from .facts import Facts

BUSY_S = 10.0
HEADER = b"SQLite format 3\0"


def path_of(url: str) -> Path:
    """The file of a ledger's URL. Raises SetupError where there is none."""
    name = make_url(url).database
    if not name or name == ":memory:":
        raise SetupError(f"the ledger {url} is no file", remedy="name a file in FARM_LEDGER_URL")
    return Path(name)


def copy(url: str, target: Path) -> None:
    """One moment of the ledger into an empty file; writers go on meanwhile. Raises ServiceDown."""
    with _opened(path_of(url), "ro") as connection:
        connection.execute("VACUUM INTO ?", (str(target),))


def facts(file: Path) -> Facts:
    """Return a whole copy's facts. Raises SetupError where it is no ledger, damaged, or of a newer version."""
    with file.open("rb") as opened:
        if opened.read(len(HEADER)) != HEADER:
            raise SetupError(f"{file} is no copy of a SQLite ledger", remedy="give a file of `farm ledger backup`")
    try:
        with _opened(file, "ro&immutable=1") as connection:
            wrong = [line for (line,) in connection.execute("PRAGMA integrity_check(3)") if line != "ok"]
            wrong += [f"{row[0]} {row[1]} has no {row[2]}" for row in connection.execute("PRAGMA foreign_key_check")][
                :3
            ]
            counters = dict(connection.execute("SELECT name, value FROM counters"))
            tables = ("experiments", "jobs", "records")
            counts = [connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables]  # noqa: S608
            found = Facts("sqlite", counters["schema"], counters["token"], *counts)
    except (ServiceDown, KeyError) as e:
        raise SetupError(f"{file} is no whole ledger: {e.args[0]}", remedy="take an older copy") from e
    if wrong:
        raise SetupError(f"{file} is damaged: {'; '.join(wrong)}", remedy="take an older copy")
    if (fault := schema.fault_of(found.version)) is not None:
        raise SetupError(f"{file} cannot be used: {fault.what}", remedy=fault.remedy)
    return found


def close_for_good(file: Path) -> None:
    """Have a ledger that nobody uses be one file without a log beside it. Raises SetupError where somebody has it open.

    A damaged one is left as it is.
    """
    try:
        with _opened(file, "rw") as connection:
            connection.execute("PRAGMA busy_timeout=2000")
            connection.execute("PRAGMA journal_mode=DELETE")  # is refused where another connection is open
    except ServiceDown as e:
        if "locked" in str(e):
            raise SetupError(f"another process has {file} open", remedy="end it, then put the ledger back") from e


@contextmanager
def _opened(file: Path, mode: str) -> Iterator[sqlite3.Connection]:
    try:
        uri = f"file:{quote(str(file.absolute()))}?mode={mode}"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)) as connection:
            yield connection
    except sqlite3.Error as e:
        remedy = "check that it can be read and that the disk has room; `farm ledger check` says what is damaged"
        raise ServiceDown(f"the ledger {file} cannot be read: {e}", remedy=remedy) from e
