"""Files of experiments by their hash: from this host's disk, or fetched from the farm once and verified."""

from __future__ import annotations

import http.client
import logging
import ssl
import threading
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path

from orchestrator.config import Settings
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.errors import FileUnavailable, ModelFileError

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

    def _fetch(self, sha256: str, farm: Settings) -> None:
        url = f"{farm.files_url}/files/{sha256}"
        secret = farm.redis_password.get_secret_value()
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {secret}"})  # noqa: S310
        try:
            trusted = ssl.create_default_context(cafile=farm.tls_ca)
            with urllib.request.urlopen(request, timeout=SILENCE_S, context=trusted) as reply:  # noqa: S310
                self._kept.receive(reply, sha256)
        except urllib.error.HTTPError as e:
            self._refused(sha256, e)
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise FileUnavailable(
                f"file {sha256} could not be fetched from {farm.files_url}: {e}",
                remedy="is the farm's web part up, and does this host reach it? room on this disk?",
            ) from e
        log.info("event=file_fetched sha256=%s", sha256)

    def _refused(self, sha256: str, error: urllib.error.HTTPError) -> None:
        with error:
            said = error.read(500).decode(errors="replace").strip()
        if error.code == http.client.NOT_FOUND:
            raise ModelFileError(f"the farm lacks a file: {said}", remedy="submit the experiment again") from error
        raise FileUnavailable(f"the farm does not give file {sha256}: {error.code} {said}") from error
