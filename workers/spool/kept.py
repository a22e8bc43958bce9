"""Records that a host keeps until the ledger has them: for a moment in memory, then as files of a folder."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from math import inf
from pathlib import Path

from orchestrator.coordination.record_stream import RECORD_BYTES, too_long
from orchestrator.system.durable_files import write_all_durably, write_durably

from .bundles import Bundles
from .dead import old_dead, remove_dead

log = logging.getLogger(__name__)
FLUSH_S = 0.5
"""A record that has no receipt after this goes to the disk: until then it is part of the block under way."""
BUNDLE = 4
"""The number of records due at once that are written into one file first."""
BUNDLED_S = 10.0
"""A record that has no receipt so long after gets a file of its own, and leaves the memory."""
AGAIN_S = 1.0
"""The time after which what the disk did not take is written again."""
PROBE_BYTES = 1 << 18
DEAD_S, DEAD_BYTES = 365 * 86_400.0, 1 << 30
"""The most age and bytes of `dead/`."""


class KeptRecords:
    """The folder of a spool, and what is not written there yet, by the name of its file. Any thread may use it.
    `clock`: monotonic, seconds."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self.folder, self._clock = folder, clock
        self._unwritten: dict[str, tuple[str, float]] = {}
        """Files that are not on disk -> their text, and when they are to be written."""
        self._refused: set[str] = set()
        """Files that the disk did not take."""
        self._bundles = Bundles(folder)
        """The bundles of files that are not on disk."""
        self._flushing, self._probing = threading.Lock(), threading.Lock()

    def put(self, name: str, text: str) -> None:
        """Keep a record in memory; due on the disk `FLUSH_S` later."""
        self._unwritten[name] = text, self._clock() + FLUSH_S

    def in_memory(self) -> list[str]:
        """The oldest first."""
        return list(self._unwritten)

    def waiting(self) -> list[str]:
        """All that are kept, the oldest first; those that are in memory alone come last. Raises OSError."""
        try:
            with os.scandir(self.folder) as entries:
                files = {entry.name: _modified(entry) for entry in entries if entry.name.endswith(".json")}
        except (FileNotFoundError, NotADirectoryError):
            files = {}
        files.update(dict.fromkeys(self.in_memory(), inf))
        return sorted(files, key=lambda name: files[name])

    def body(self, name: str) -> bytes:
        """Return its bytes; in the place of too many, which an earlier version left, only that. Raises OSError."""
        known = self._unwritten.get(name)
        text = b"" if known is None else known[0].encode()
        size = len(text) if text else (self.folder / name).stat().st_size
        if size > RECORD_BYTES:
            return too_long(name, size)
        return text or (self.folder / name).read_bytes()

    def flush(self, *, everything: bool = True) -> None:
        """Write what is in memory, or only what is due, in few flushes of the disk."""
        with self._flushing:
            now = self._clock()
            due = {name: text for name, (text, at) in list(self._unwritten.items()) if everything or at <= now}
            if not everything:
                due = self._without_bundled(due, now)
            try:
                write_all_durably({self.folder / name: text for name, text in due.items()})
            except OSError as e:  # some of them may find room
                log.info("%d records one by one: %s", len(due), e)
                for name, text in due.items():
                    self._write(name, text)
            else:
                self._written(due)

    def _without_bundled(self, due: dict[str, str], now: float) -> dict[str, str]:
        """Return due records that get a file of their own now: few records, or those that were in a bundle long."""
        new = {name: text for name, text in due.items() if not self._bundles.holds(name)}
        if len(new) < BUNDLE:
            return due
        try:
            self._bundles.write(new)
        except OSError as e:
            log.info("%d records not in one file: %s", len(new), e)
            return due
        for name, text in new.items():
            if name in self._unwritten:
                self._unwritten[name] = text, now + BUNDLED_S
        self._bundles.drop(name for name in new if name not in self._unwritten)
        return {name: text for name, text in due.items() if name not in new}

    def _write(self, name: str, text: str) -> None:
        try:
            write_durably(self.folder / name, text)
        except OSError as e:
            if name not in self._refused:
                log.error("%s is kept in memory only: %s; give its disk room", self.folder / name, e)
            self._refused.add(name)
            self._unwritten[name] = text, self._clock() + AGAIN_S
        else:
            self._written([name])

    def _written(self, names: Iterable[str]) -> None:
        gone = list(names)
        for name in gone:
            self._unwritten.pop(name, None)
            self._refused.discard(name)
        self._bundles.drop(gone)

    def check(self) -> str:
        """Return why the disk takes no record now: no space, no right, no folder; empty where it does."""
        probe = self.folder / ".probe"
        with self._probing:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                probe.write_bytes(bytes(PROBE_BYTES))
                probe.unlink()
            except OSError as e:
                return f"{e.strerror or e}: {self.folder}"
        return ""

    def remove(self, names: Sequence[str]) -> list[str]:
        """Remove records; return those that are gone now: the others wait for their next turn."""
        gone = []
        for name in names:
            try:
                if name not in self._unwritten:  # what is just being written goes in the next pass
                    (self.folder / name).unlink(missing_ok=True)
            except OSError as e:
                log.error("%s waits: %s", self.folder / name, e)
                continue
            gone.append(name)
        self._written(gone)
        return gone

    def set_aside(self, name: str) -> Path | None:
        """Move it to `dead/`: where it lies now; None where the disk has no room, and it is gone. Raises OSError."""
        dead = self.folder / "dead" / name
        with self._flushing:
            if name in self._unwritten:
                self._write(name, self._unwritten[name][0])
            there_is_room = name not in self._unwritten
            if there_is_room:
                dead.parent.mkdir(exist_ok=True)
                (self.folder / name).replace(dead)
        self._written([name])
        remove_dead(old_dead(self.folder.parent, DEAD_S, DEAD_BYTES))
        return dead if there_is_room else None

    def take_back(self) -> None:
        """Take back what an earlier process left in bundles, and what earlier versions set aside here by themselves."""
        for name, text in self._bundles.take_back().items():
            self._unwritten[name] = text, self._clock()
        for path in self.folder.glob("*.unreadable"):
            path.rename(path.with_suffix(".json"))


def _modified(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat().st_mtime
    except OSError:
        return inf
