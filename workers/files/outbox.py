"""Files that were made on this host and that the farm is to have: the names wait on disk until it has them.

`outbox/` of the state folder has an empty file for each, by its SHA-256; the content is among this host's artifacts.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from orchestrator.model.errors import FileUnavailable, ModelFileError
from orchestrator.system.durable_files import write_durably

from .host_files import HostFiles

log = logging.getLogger(__name__)
RETRY_S = 10.0


class Outbox:
    """Threads share it. `retry_s`: until the farm is asked again to take what it did not."""

    def __init__(self, state: Path, files: HostFiles, *, retry_s: float = RETRY_S) -> None:
        self._folder, self._files, self._retry_s = state / "outbox", files, retry_s
        self._adding = threading.Lock()
        """Two phones may have trained the same model at once."""

    def add(self, sha256: str) -> None:
        """Send a file at once, so that the farm has it before it hears of it; where that fails, later."""
        with self._adding:
            write_durably(self._folder / sha256, "")
        self._send(sha256)

    def waiting(self) -> list[str]:
        """Return what the farm lacks still, by its SHA-256."""
        return sorted(path.name for path in self._folder.glob("*") if len(path.name) == 64)

    def run(self, stop: threading.Event) -> None:
        """Send what waits, also from before this process began, until `stop`."""
        while True:
            for sha256 in self.waiting():
                if stop.is_set() or not self._send(sha256):
                    break
            if stop.wait(self._retry_s):
                return

    def _send(self, sha256: str) -> bool:
        """Send a file; return whether it need not be sent any more."""
        try:
            self._files.send(sha256)
        except ModelFileError as e:
            log.error("event=file_lost sha256=%s error=%s", sha256, e)
        except FileUnavailable as e:
            log.warning("%s waits in %s: %s", sha256, self._folder, e)
            return False
        (self._folder / sha256).unlink(missing_ok=True)
        return True
