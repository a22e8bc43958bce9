"""Folders and files that only this user may enter and read, made so from the start."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

AT_ONCE = 16
"""Files that are flushed side by side."""
UMASK = 0o077
"""The umask of every process of the farm: what it makes is this user's alone."""


def make_private(folder: Path) -> None:
    """Make a folder, and what lacks above it, this user's alone; an existing one of this user's is closed to others.

    Raises OSError; PermissionError where it is somebody else's, or one that all users share.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(0o700, exist_ok=True)
    facts = folder.stat()
    if facts.st_mode & stat.S_ISVTX or facts.st_uid not in (os.getuid(), os.geteuid()):
        raise PermissionError(1, "it is not this user's own folder", str(folder))
    if facts.st_mode & UMASK:  # of an older version, or made by hand
        folder.chmod(0o700)


def make_file(path: Path) -> None:
    """An empty file for this user's eyes, where there is none yet: who opens it later finds its mode."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def settle(partial: Path, path: Path) -> None:
    """Put a written file in the place of another, as a whole: after a crash there is the old content or the new one."""
    settle_all([(partial, path)])


def settle_all(written: Sequence[tuple[Path, Path]]) -> None:
    """The same of several: side by side, so that the file system flushes them together; a folder's names once."""
    with ThreadPoolExecutor(AT_ONCE) if len(written) > 1 else nullcontext() as threads:
        list((threads.map if threads else map)(_flush, [partial for partial, _ in written]))
    for partial, path in written:
        partial.replace(path)
    for folder in {path.parent for _, path in written}:
        _flush(folder)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
