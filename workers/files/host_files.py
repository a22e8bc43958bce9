"""Files by their hash: from this host's disk, or fetched from the farm once and verified; and sent to the farm."""

from __future__ import annotations

import http.client
import logging
import ssl
import threading
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.errors import FileUnavailable, ModelFileError
from orchestrator.system.config import Settings

log = logging.getLogger(__name__)
SILENCE_S = 30.0
"""A farm that sends nothing for this long is away."""


class HostFiles:
    """Threads share it: a file that several want at once is fetched once. `farm`: where to fetch them; None: the state
    folder is the farm's own, and has them all."""

    def __init__(self, state: Path, farm: Settings | None = None) -> None:
        self._farm = farm if farm and farm.files_url else None
        self._kept = Artifacts(state)
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def path(self, sha256: str) -> Path:
        """The file, its content verified.

        Raises ModelFileError where the farm itself lacks it: no other attempt would find it. Raises FileUnavailable
        where this host cannot get it: that is no fault of the job's.
        """
        if self._farm is None:
            return self._kept.path(sha256)
        with self._locks[sha256]:
            try:
                return self._kept.path(sha256)
            except ModelFileError:
                self._fetch(sha256, self._farm)
            return self._kept.path(sha256)

    def send(self, sha256: str) -> None:
        """Give the farm a file that was made here; it verifies the hash. Nothing to do where the farm is here.

        Raises ModelFileError where this host lacks the file: it cannot be sent any more. Raises FileUnavailable where
        the farm does not take it now.
        """
        if self._farm is None:
            return
        path = self._kept.path(sha256)
        with path.open("rb") as body, self._asked(self._farm, sha256, body, path.stat().st_size):
            log.info("event=file_given sha256=%s", sha256)

    def _fetch(self, sha256: str, farm: Settings) -> None:
        with self._asked(farm, sha256) as reply:
            self._kept.receive(reply, sha256)
        log.info("event=file_fetched sha256=%s", sha256)

    @contextmanager
    def _asked(
        self, farm: Settings, sha256: str, body: BinaryIO | None = None, size: int = 0
    ) -> Iterator[http.client.HTTPResponse]:
        """The farm's answer to `GET`, or with a body to `PUT`; what fails while it is read is told alike."""
        headers = {"Authorization": f"Bearer {farm.redis_password.get_secret_value()}"}
        if body is not None:
            headers |= {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        request = urllib.request.Request(  # noqa: S310
            f"{farm.files_url}/files/{sha256}", body, headers, method="GET" if body is None else "PUT"
        )
        try:
            trusted = ssl.create_default_context(cafile=farm.tls_ca)
            with urllib.request.urlopen(request, timeout=SILENCE_S, context=trusted) as reply:  # noqa: S310
                yield reply
        except urllib.error.HTTPError as e:
            self._refused(sha256, e)
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise FileUnavailable(
                f"file {sha256} could not be {'fetched from' if body is None else 'sent to'} {farm.files_url}: {e}",
                remedy="is the farm's web part up, and does this host reach it? room on this disk?",
            ) from e

    def _refused(self, sha256: str, error: urllib.error.HTTPError) -> None:
        with error:
            said = error.read(500).decode(errors="replace").strip()
        if error.code == http.client.NOT_FOUND:
            raise ModelFileError(f"the farm lacks a file: {said}", remedy="submit the experiment again") from error
        raise FileUnavailable(f"the farm refuses file {sha256}: {error.code} {said}") from error
