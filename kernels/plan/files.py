"""The content of a plan's files: bytes, or of large ones a mapped file, of which memory holds a piece at a time."""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kernels.errors import PlanError, checkpoint

Content = bytes | mmap.mmap
_LARGE, _PIECE = 1 << 25, 1 << 23
"""Bytes from which on content is a mapped file; bytes of a piece."""


def content_of(pieces: Iterable[Any], size: int) -> Content:
    """Return pieces of bytes, one behind the other, of `size` together: many of them in a file without a name.

    Raises PlanError where the disk has no room for that.
    """
    if size < _LARGE:
        return b"".join(pieces)
    try:
        with tempfile.TemporaryFile() as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as e:
        raise PlanError(
            f"{tempfile.gettempdir()}: the plan's weights, {size} bytes, cannot be written: {e.strerror or e}; "
            "make room there, or name another folder in TMPDIR"
        ) from e


def read_content(path: Path) -> Content:
    """Return a file's content. Raises OSError."""
    if path.stat().st_size < _LARGE:
        return path.read_bytes()
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def write_content(path: Path, content: Content) -> None:
    """Write a file anew: whoever has mapped the one that was there keeps its content."""
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.writelines(_pieces(content))


def sha256_of(content: Content) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal digits."""
    found = hashlib.sha256()
    for piece in _pieces(content):
        found.update(piece)
    return found.hexdigest()


def _pieces(content: Content) -> Iterator[bytes]:
    """Yield the content; of a mapped file, memory gives up each piece before the next."""
    if isinstance(content, bytes):
        yield content
        return
    for first in range(0, len(content), _PIECE):
        checkpoint()
        yield content[first : first + _PIECE]
        content.madvise(mmap.MADV_DONTNEED, first, min(_PIECE, len(content) - first))
