"""Copies of a PostgreSQL ledger, by the tools that come with PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url

from orchestrator.model.errors import ServiceDown, SetupError

from .facts import Facts

HEADER = b"PGDMP"
INSTALL = "install PostgreSQL's client programs of the server's version (sudo apt-get install postgresql-client)"


def copy(url: str, target: Path) -> None:
    """One moment of the ledger; writers go on meanwhile. Raises ServiceDown, SetupError where pg_dump is not there."""
    _run(url, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--file", str(target))


def facts(file: Path) -> Facts:
    """Reads a dump to its end. Raises SetupError where it is none, or is cut off."""
    with file.open("rb") as opened:
        if opened.read(len(HEADER)) != HEADER:
            raise SetupError(f"{file} is no dump of PostgreSQL", remedy="give a file of `farm ledger backup`")
    try:
        _call(["pg_restore", "--file", os.devnull, str(file)], {})
    except ServiceDown as e:
        raise SetupError(f"{file} is no whole dump: {e.args[0]}", remedy="take an older copy") from e
    return Facts("pg_dump")


def put_back(url: str, file: Path, script: Path, before: Sequence[str], after: Sequence[str]) -> None:
    """Statements, the dump, and statements, in one transaction. `script`: a file for the dump's SQL."""
    _call(["pg_restore", "--no-owner", "--no-privileges", "--file", str(script), str(file)], {})
    words = [word for sql in before for word in ("-c", sql)]
    words += ["-f", str(script), *(word for sql in after for word in ("-c", sql))]
    _run(url, "psql", "--no-psqlrc", "--quiet", "--single-transaction", "--set", "ON_ERROR_STOP=1", *words)


def _run(url: str, program: str, *words: str) -> None:
    """The password goes by the environment: arguments can be read by everyone on the machine."""
    from psycopg.conninfo import make_conninfo

    parsed = make_url(url)
    parts: dict[str, Any] = {"host": parsed.host, "port": parsed.port, "user": parsed.username}
    known = {name: value for name, value in {**parts, "dbname": parsed.database, **parsed.query}.items() if value}
    secret = {"PGPASSWORD": str(parsed.password)} if parsed.password else {}
    _call([program, "--dbname", make_conninfo(**known), *words], secret)


def _call(argv: list[str], secret: dict[str, str]) -> None:
    path = shutil.which(argv[0])
    if path is None:
        raise SetupError(f"{argv[0]} is not on this machine's PATH", remedy=INSTALL)
    environment = {**os.environ, **secret}
    done = subprocess.run([path, *argv[1:]], capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise ServiceDown(f"{argv[0]} failed: {done.stderr.strip()[-500:]}", remedy=f"mend that, or {INSTALL}")
