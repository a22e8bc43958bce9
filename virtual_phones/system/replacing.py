"""Replace files as programs see it, without what a host's file system adds: ext4 writes a file to its disk before the
file takes another's place by a rename, which takes half a millisecond of the processor and more of the clock."""

from __future__ import annotations

import ctypes
import os
import stat
from pathlib import Path

_AT_ONCE_BYTES = 4096
"""One write of so many bytes at the begin of a file is done wholly or not at all, whoever is killed."""
_HERE, _EXCHANGE = -100, 2
_LIBC = ctypes.CDLL(None)


def rewrite(path: Path, text: bytes) -> None:
    """Give a file this text, with blanks behind it where there was more. Raises OSError."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        size = os.fstat(handle).st_size
        if 0 < max(size, len(text)) <= _AT_ONCE_BYTES:
            os.pwrite(handle, text.ljust(size), 0)
            return
    finally:
        os.close(handle)
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(text)
    fresh.replace(path)


def move(start: Path, end: Path) -> None:
    """Move as `rename` does: what is at `end` goes, in one step. Raises OSError."""
    if not (_is_file(start) and _is_file(end) and _exchanged(start, end)):
        start.replace(end)
    elif not start.samefile(end):
        start.unlink()


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _exchanged(one: Path, other: Path) -> bool:
    """Return whether two files were exchanged: not every file system can."""
    return bool(_LIBC.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)
