"""The records that the ledger could not store: they lie in `spool/dead/` of their host, for a year at most."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def old_dead(state: Path, older_than_s: float, most_bytes: int) -> list[Path]:
    """Files of `spool/dead/` that are too old, or, the oldest first, too many bytes; the ledger has what is in them."""
    found = []
    for path in (state / "spool" / "dead").glob("*.json"):
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime, path.stat().st_size, path))
    gone, left, oldest = [], sum(size for _, size, _ in found), time.time() - older_than_s
    for modified, size, path in sorted(found):
        if modified < oldest or left > most_bytes:
            gone.append(path)
            left -= size
    return gone


def remove_dead(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
