"""A certificate that somebody else renews: its files are read again when they change, while the server runs."""

from __future__ import annotations

import logging
import ssl
from datetime import UTC, datetime

from farm.reach.certificates import SAID_BEFORE, Certificate, checked, ends_at
from orchestrator.model.errors import SetupError

log = logging.getLogger(__name__)
LOOK_S = 20


class Renewal:
    """The files of a server's certificate, and what it speaks TLS by."""

    def __init__(self, own: Certificate, context: ssl.SSLContext) -> None:
        self._own, self._context = own, context
        self._read = self._changed_at()
        self._said = ""

    async def look(self) -> None:
        """Read the files again if they have changed; connections from then on have them. Files that are no certificate
        with its key, as while they are being written, count for nothing."""
        now = self._changed_at()
        if now != self._read:
            try:
                checked(self._own)
                self._context.load_cert_chain(self._own.certificate, self._own.key)
            except (SetupError, ssl.SSLError, OSError) as e:
                self._say(f"event=certificate_not_renewed error={str(e).splitlines()[0]}")
                return
            self._read = now
            log.info("event=certificate_renewed until=%s", ends_at(self._own.certificate).isoformat())
        try:
            left = ends_at(self._own.certificate) - datetime.now(UTC)
        except (OSError, ValueError):
            return
        if left < SAID_BEFORE:
            self._say(f"event=certificate_ends days={left.days} file={self._own.certificate}")

    def _say(self, text: str) -> None:
        if text != self._said:
            log.warning(text)
        self._said = text

    def _changed_at(self) -> tuple[int, ...]:
        try:
            return tuple(path.stat().st_mtime_ns for path in (self._own.certificate, self._own.key))
        except OSError:
            return ()
