"""Folders that a host keeps by the hash of what shapes them: written whole, and bounded in number."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def write_whole(folder: Path, write: Callable[[Path], object]) -> None:
    """Have `write` fill a folder, as a whole: a reader sees all of it or nothing."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder.parent))
    try:
        write(partial)
        partial.rename(folder)
    except OSError:
        if not folder.is_dir():  # another process may have been quicker
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def note_use(folder: Path) -> bool:
    """Note that a folder is used now; False where it is not there."""
    now = time.time_ns()  # the file system's own clock has ticks of some ms
    try:
        os.utime(folder, ns=(now, now))
    except FileNotFoundError:
        return False
    return True


def prune(parent: Path, most: int, spared_s: float = 0.0) -> None:
    """Remove the folders beyond `most` that were used longest ago, each at once as a whole.

    `spared_s`: time since its last use for which one stays, however many there are.
    """
    found = sorted((_used_at(path), path) for path in parent.iterdir() if not path.name.startswith("."))
    for used_at, path in found[:-most]:
        if time.time() - used_at < spared_s:
            continue
        gone = path.with_name(f".gone-{path.name}-{os.getpid()}")
        with suppress(OSError):  # another process was quicker
            path.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


def _used_at(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:  # another process has removed it
        return 0.0
