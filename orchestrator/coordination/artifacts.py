"""Store the files of experiments (models, inputs) under their SHA-256."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from orchestrator.model.engine_build import EngineBuild
from orchestrator.model.errors import ModelFileError
from orchestrator.system.private_files import make_private

CHUNK_BYTES = 1 << 20
AGAIN = "delete it and submit the experiment again"
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


class SupportsRead(Protocol):
    """A file, or an answer that is read like one."""

    def read(self, size: int, /) -> bytes: ...


class Artifacts:
    """The files of one farm, in `artifacts/` of its state folder. Processes may share it."""

    def __init__(self, state: Path) -> None:
        self.folder = state / "artifacts"

    def put(self, path: Path) -> str:
        """Keep a copy of a file; returns its SHA-256. Raises ModelFileError where it cannot be read."""
        try:
            with path.open("rb") as source:
                return self._copy(source)
        except OSError as e:
            raise ModelFileError(f"{path}: cannot be kept: {e.strerror or e}") from e

    def put_bytes(self, content: bytes) -> str:
        """Keep a content; returns its SHA-256. Raises ModelFileError where the folder cannot be written."""
        try:
            return self._copy(io.BytesIO(content))
        except OSError as e:
            raise ModelFileError(f"{self.folder}: cannot keep a model there: {e.strerror or e}") from e

    def path(self, sha256: str) -> Path:
        """The kept file, its content verified. Raises ModelFileError where it is missing or damaged."""
        stored = self._place(sha256)
        try:
            with stored.open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError as e:
            told, remedy = f"artifact {sha256} is not in {self.folder}", "submit the experiment again"
            raise ModelFileError(told, remedy=remedy) from e
        except OSError as e:
            raise ModelFileError(f"{stored}: cannot be read: {e.strerror or e}", remedy=AGAIN) from e
        if actual != sha256:
            raise ModelFileError(
                f"{stored}: content is damaged (its SHA-256 is {actual})",
                remedy=AGAIN,
            )
        return stored

    def has(self, sha256: str) -> bool:
        """Return whether a file is kept; its content is not looked at."""
        return self._place(sha256).is_file()

    def named(self, start: str) -> str:
        """The SHA-256 of the one kept file that begins so (8 digits at least). Raises ModelFileError."""
        if not re.fullmatch(r"[0-9a-f]{8,64}", start):
            raise ModelFileError(f"{start!r}: give 8 to 64 digits of a SHA-256")
        found = [each.name for each in self.folder.glob(f"{start[:2]}/{start}*")]
        if len(found) != 1:
            raise ModelFileError(f"{len(found)} kept files have a SHA-256 that begins with {start}")
        return found[0]

    def named_by(self, job: str) -> set[str]:
        """Return the files that a job names in its JSON, with those of its engine's builds."""
        found = set(_SHA256.findall(job))
        for build in json.loads(job).get("cell", {}).get("build", {}).values():
            with suppress(ModelFileError):  # whoever asks for it is told so
                found |= set(EngineBuild.read(self.path(build)).files.values())
        return found

    def sizes_in(self, text: str) -> dict[str, int]:
        """Return the bytes of the kept files that a text names, by their SHA-256."""
        found = dict[str, int]()
        for sha256 in set(_SHA256.findall(text)):
            with suppress(OSError):
                found[sha256] = self._place(sha256).stat().st_size
        return found

    def receive(self, source: SupportsRead, sha256: str) -> None:
        """Keep what somebody sends under the hash that it must have. Raises OSError, ValueError for another hash."""
        self._place(sha256)
        self._copy(source, sha256)

    def _copy(self, source: SupportsRead, wanted: str = "") -> str:
        make_private(self.folder)
        digest = hashlib.sha256()
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as target:
                while chunk := source.read(CHUNK_BYTES):
                    digest.update(chunk)
                    target.write(chunk)
                target.flush()
                os.fsync(target.fileno())
            if wanted and digest.hexdigest() != wanted:
                raise ValueError(f"what came has the SHA-256 {digest.hexdigest()}, not {wanted}")
            stored = self._place(digest.hexdigest())
            stored.parent.mkdir(0o700, exist_ok=True)
            if stored.is_dir():
                stored.rmdir()  # an empty folder is damage; nothing goes that holds something
            Path(name).replace(stored)
        finally:
            Path(name).unlink(missing_ok=True)
        return digest.hexdigest()

    def _place(self, sha256: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise ModelFileError(f"{sha256!r} is not a SHA-256")
        return self.folder / sha256[:2] / sha256
