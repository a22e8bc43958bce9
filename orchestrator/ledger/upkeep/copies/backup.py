"""Copy the ledger into a file while the farm runs: one moment of it, written durably, opened again before it counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import make_url

from orchestrator.ledger.upkeep import written_whole
from orchestrator.model.errors import SetupError

from . import postgres, sqlite
from .facts import Facts


@dataclass(frozen=True)
class Copy:
    """A copy that was opened and read."""

    file: Path
    size: int
    """Bytes."""
    facts: Facts


def backup(url: str, file: Path, *, force: bool = False) -> Copy:
    """Copy the ledger of this URL; a file that is there already is replaced only with `force`, and only by a whole one.

    Raises SetupError where the file cannot be written, or the copy cannot be read.
    """
    if file.exists() and not force:
        raise SetupError(f"{file} is there already", remedy="give another name, or --force to replace it")
    if not file.parent.is_dir():
        raise SetupError(f"{file}: there is no folder {file.parent}", remedy=f"mkdir -p {file.parent}")
    with written_whole(file) as partial:
        write, read = (sqlite.copy, sqlite.facts) if _is_sqlite(url) else (postgres.copy, postgres.facts)
        write(url, partial)
        facts = read(partial)
        size = partial.stat().st_size
    return Copy(file, size, facts)


def _is_sqlite(url: str) -> bool:
    return make_url(url).get_backend_name() == "sqlite"
