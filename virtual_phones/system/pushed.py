"""The programs that a phone runs: those whose content came through `adb push`, and no other file.

They are known by their SHA-256, so that they may be moved and copied; a file that the shell wrote, that somebody put
into the phone's folder, or that was changed since runs no more than a text does.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

_HEADS = (b"\x7fELF", b"#!")
"""The first bytes of what the kernel executes."""


class PushedPrograms:
    """SHA-256 of every program that was pushed to one phone."""

    def __init__(self, digests: Iterable[str] = ()) -> None:
        self.digests = set(digests)
        self._seen: dict[tuple[int, int, int], str] = {}
        """Inode, time of change and size of files that were hashed."""

    def note(self, path: Path) -> None:
        """A file was pushed whole."""
        if _is_program(path):
            self.digests.add(self._digest(path))

    def knows(self, path: Path) -> bool:
        """Return whether this content was pushed."""
        return path.is_file() and _is_program(path) and self._digest(path) in self.digests

    def drop_others(self, folder: Path) -> None:
        """Remove executables that nobody pushed, as far as is known: whoever needs them pushes them again."""
        for directory, _, names in os.walk(folder):
            for path in (Path(directory, name) for name in names):
                if not path.is_symlink() and os.access(path, os.X_OK) and path.is_file() and not self.knows(path):
                    path.unlink()

    def _digest(self, path: Path) -> str:
        facts = path.stat()
        mark = (facts.st_ino, facts.st_ctime_ns, facts.st_size)
        if mark not in self._seen:
            with path.open("rb") as file:
                self._seen[mark] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._seen[mark]


def _is_program(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4).startswith(_HEADS)
