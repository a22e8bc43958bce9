"""Copies of many records in one file: one flush of the disk for all of them.

A bundle is for the case that this process ends before the ledger has its records; whoever starts next takes them back.
As long as the process lives they are in its memory as well, and nobody reads the bundle.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from orchestrator.system.durable_files import write_durably

log = logging.getLogger(__name__)
SUFFIX = ".bundle"


class Bundles:
    """Files `*.bundle` of a folder: of each record a line with its name and a line with its JSON. Threads may share
    it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, Path] = {}
        """Record -> the bundle with its copy."""
        self._needed: dict[Path, set[str]] = {}
        self._lock = threading.Lock()

    def holds(self, name: str) -> bool:
        """Return whether a copy of this record is on the disk."""
        return name in self._held

    def write(self, texts: Mapping[str, str]) -> None:
        """Write copies; they are on the disk when it returns. Raises OSError; then nothing is there."""
        path = self._folder / f"{secrets.token_hex(8)}{SUFFIX}"
        write_durably(path, "".join(f"{name}\n{text}\n" for name, text in texts.items()))
        self._know(path, texts)

    def drop(self, names: Iterable[str]) -> None:
        """These records need no copy any more; a bundle goes with the last one that does. Raises OSError."""
        with self._lock:
            for name in names:
                if (path := self._held.pop(name, None)) is not None:
                    self._needed[path].discard(name)
            done = [path for path, left in self._needed.items() if not left]
            for path in done:
                path.unlink(missing_ok=True)
                del self._needed[path]

    def take_back(self) -> dict[str, str]:
        """Record -> its JSON, of the bundles that an earlier process left. One that cannot be read stays there."""
        left = dict[Path, dict[str, str]]()
        for path in set(self._folder.glob(f"*{SUFFIX}")) - set(self._needed):
            try:
                left[path] = _read(path)
            except OSError as e:
                log.error("%s is left for the next start: %s; look after this host's disk", path, e.strerror or e)
        for path, texts in left.items():
            log.info("%s: %d records of an earlier process", path.name, len(texts))
            self._know(path, texts)
        return {name: text for texts in left.values() for name, text in texts.items()}

    def _know(self, path: Path, names: Iterable[str]) -> None:
        with self._lock:
            self._needed[path] = set(names)
            self._held |= dict.fromkeys(self._needed[path], path)


def _read(path: Path) -> dict[str, str]:
    lines = path.read_bytes().decode(errors="replace").split("\n")
    return dict(zip(lines[0:-1:2], lines[1::2], strict=False))
