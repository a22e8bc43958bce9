"""Store the files that people send for their experiments, by project and SHA-256, while somebody uses them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from orchestrator.acts.access.storage import Storage
from orchestrator.coordination.artifacts import CHUNK_BYTES
from orchestrator.model.errors import FarmError, KeyTaken, ModelFileError
from orchestrator.system.private_files import make_private

KEPT_S = 14 * 86400.0
"""The time for which a file is kept that no submission names. An experiment keeps copies of its own."""
FREE_BYTES = 1 << 30
"""The free space of the disk that people's files leave to the farm."""
LOOK_BYTES = 16 << 20
"""The bytes after which it is looked again whether there is room."""
PART = ".part"


@dataclass(frozen=True)
class Held:
    """The part of a file that has come."""

    bytes: int
    whole: bool


class Uploads:
    """The files of one project, below `uploads/` of a state folder. Processes may share them."""

    def __init__(self, storage: Storage) -> None:
        self.state, self.project, self._folder, self._storage = (
            storage.state, storage.project, storage.folder, storage
        )  # fmt: skip

    def held(self, sha256: str) -> Held:
        """Return how much of a file is there. Raises ModelFileError for what is no SHA-256."""
        found, whole = Held(0, False), self._place(sha256)
        for path in (whole.with_suffix(PART), whole):  # in this order: a part may become the whole between the looks
            with suppress(OSError):
                found = Held(path.stat().st_size, path == whole)
        return found

    def path(self, sha256: str) -> Path:
        """Return a whole file, whose time begins anew. Raises ModelFileError where it is not there."""
        try:
            os.utime(path := self._place(sha256))
        except OSError as e:
            what = f"the project {self.project} has no file with the SHA-256 {sha256}"
            raise ModelFileError(what, remedy=f"send it: PUT /files/{sha256}?project={self.project}") from e
        return path

    @contextmanager
    def coming(self, sha256: str, offset: int, length: int) -> Iterator[Coming]:
        """Take what comes of a file of `length` bytes, from `offset` on. What has come is kept where the rest does not.

        Raises NotAllowed beyond the project's storage, KeyTaken where another request sends the same file, or where
        the farm has not `offset` bytes of it.
        """
        part = self._place(sha256).with_suffix(PART)
        make_private(self._folder)
        self._tidy()
        with os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as e:
                raise KeyTaken(f"{sha256} is being sent by another request") from e
            if not _is_at(part, file):
                raise KeyTaken(f"{sha256} has just been sent by another request")
            self._let(part, length)
            has = os.fstat(file.fileno()).st_size
            if offset != has:
                raise KeyTaken(f"the farm has {has} bytes of {sha256}, not {offset}", remedy=f"send it from byte {has}")
            yield Coming(file, part, sha256, length, lambda: self._let(part, length))

    def _let(self, part: Path, length: int) -> None:
        """Raise NotAllowed where a file of `length` bytes is too much beside what has come of others by now."""
        self._storage.let({part.stem: length}, sent=True)
        if shutil.disk_usage(self._folder).free - (length - _bytes(part)) < FREE_BYTES:
            raise ModelFileError(f"the farm's disk has no room for {length} bytes", remedy="make room there")

    def _tidy(self) -> None:
        """Remove what nobody used for a while, of all projects: it is all old, and may be sent again."""
        for each in self._folder.parent.glob("*/*"):
            with suppress(OSError):
                if each.stat().st_mtime < time.time() - KEPT_S:
                    each.unlink()

    def _place(self, sha256: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise ModelFileError(f"{sha256[:100]!r} is not a SHA-256: give its 64 hexadecimal digits in lower case")
        return self._folder / sha256


def _is_at(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:  # another request has just renamed or removed it
        return False


def _bytes(path: Path) -> int:
    """Return the size of a file; 0 where another request has just renamed or removed it."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class Coming:
    """A file that comes in pieces: counted and hashed while it does."""

    def __init__(self, file: BinaryIO, part: Path, sha256: str, length: int, let: Callable[[], None]) -> None:
        """`let` raises where there is no room for it any more, since others send files, too."""
        self._file, self._part, self._sha256, self._length, self._let = file, part, sha256, length, let
        self._digest, self.bytes = hashlib.sha256(), 0
        while chunk := file.read(CHUNK_BYTES):
            self._count(chunk)

    def write(self, piece: bytes) -> None:
        """Raises ModelFileError for more than was announced, or a full disk; NotAllowed as `coming`."""
        if self.bytes + len(piece) > self._length:
            self._part.unlink()
            raise ModelFileError(f"more than the {self._length} bytes came that `Upload-Length` announces")
        if self.bytes // LOOK_BYTES != (self.bytes + len(piece)) // LOOK_BYTES:
            self._look()
        try:
            self._file.write(piece)
        except OSError as e:
            raise ModelFileError(f"the farm cannot keep {self._sha256}: {e.strerror}", remedy="make room there") from e
        self._count(piece)

    def _look(self) -> None:
        """Make room for the others where there is none for all."""
        try:
            self._let()
        except FarmError:
            self._part.unlink()
            raise

    def _count(self, piece: bytes) -> None:
        self._digest.update(piece)
        self.bytes += len(piece)

    def end(self) -> Held:
        """Keep the whole file once all has come. Raises ModelFileError for another hash, NotAllowed as `coming`."""
        self._file.flush()
        if self.bytes < self._length:
            return Held(self.bytes, False)
        self._look()
        if (found := self._digest.hexdigest()) != self._sha256:
            self._part.unlink()
            raise ModelFileError(f"what came has the SHA-256 {found}, not {self._sha256}", remedy="send it again")
        os.fsync(self._file.fileno())
        self._part.replace(self._part.with_suffix(""))
        return Held(self.bytes, True)
