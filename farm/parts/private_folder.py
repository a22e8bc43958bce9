"""Folders that only this user may enter, made so from the start."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from orchestrator.errors import SetupError

SOCKET_PATH_LIMIT = 100
"""Bytes; the kernel takes 107."""


def make_private(folder: Path) -> None:
    """Make a folder of this user's alone, or check that it is one. Raises SetupError for somebody else's."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise SetupError(f"{folder} is not this user's own folder", remedy=f"see whose it is: ls -ld {folder}")
    if facts.st_mode & 0o077:  # of an older version, or made by hand
        folder.chmod(0o700)


def socket_path(folder: Path, name: str) -> Path:
    """Where a unix socket of a private folder lies: in it, or where that path is too long for the kernel, in a private
    folder under the machine's temporary one, which is the same every time."""
    path = folder / name
    if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT:
        return path
    mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"pocketfarm-{os.getuid()}-{mark}", name)
