"""Read archives; a file that is none is told so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from orchestrator.model.errors import SetupError

from .columns import FORMAT

AT_ONCE = 500


def sha256_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def keys_of(file: Path) -> Iterator[tuple[tuple[str, int], str]]:
    """Job and attempt of every record, with the hash of its JSON: of what the file holds, not of what it says."""
    for row in rows_of(file, ("job_id", "attempt", "record")):
        if row["record"] is not None:
            yield (row["job_id"], row["attempt"]), hashlib.sha256(row["record"].encode()).hexdigest()


def head_of(file: Path) -> dict[str, Any]:
    """Return what the file says of its experiments. Raises SetupError where it is no archive of this format."""
    remedy = "give a file of `farm ledger archive`"
    try:
        metadata = parquet.read_schema(file).metadata or {}
        found: dict[str, Any] = json.loads(metadata[b"pocketfarm"])
    except (pa.ArrowInvalid, KeyError, ValueError, OSError) as e:
        raise SetupError(f"{file} is no archive: {e}", remedy=remedy) from e
    if found.get("format") != FORMAT:
        raise SetupError(f"{file} is an archive of format {found.get('format')}, this is {FORMAT}", remedy=remedy)
    return found


def rows_of(file: Path, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Raises SetupError where a part of the file cannot be read."""
    try:
        with parquet.ParquetFile(file) as opened:
            for part in opened.iter_batches(AT_ONCE, columns=list(columns)):
                yield from part.to_pylist()
    except (pa.ArrowInvalid, OSError) as e:
        raise SetupError(f"{file} is damaged: {e}", remedy="take another copy of it") from e
