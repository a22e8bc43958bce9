"""Paths of unix sockets whose folder may have a long path."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

LIMIT = 100
"""Bytes; the kernel takes 107."""


def socket_path(folder: Path, name: str) -> Path:
    """Return a socket's path: in the folder, or, where that is too long for the kernel, in one under the machine's
    temporary folder, the same every time; whoever makes the socket makes that folder private."""
    path = folder / name
    if len(os.fsencode(path)) <= LIMIT:
        return path
    mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path(tempfile.gettempdir(), f"pocketfarm-{os.getuid()}-{mark}", name)
