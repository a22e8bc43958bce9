"""Keep records on this host's disk until the ledger has them.

A record is written and flushed to disk first, then sent to the stream, again every few seconds, and removed only when
the ledger's receipt is there. Sending twice is harmless: the ledger keeps one record per (job, attempt).
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from pydantic import ValidationError
from redis import Redis
from redis.exceptions import RedisError

from orchestrator.coordination.keys import RECORDS, receipt
from orchestrator.errors import FarmError
from orchestrator.model.record import Record
from workers.durable_files import write_durably

log = logging.getLogger(__name__)
PERIOD_S = 1.0
RESEND_S = 10.0
"""A record without a receipt is sent again after this."""
MAX_STREAM = 100_000


class Spool:
    """The folder `state/spool`; one thread sends, any thread may add."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "spool"
        self._sent_at: dict[str, float] = {}
        self._added = threading.Event()

    def add(self, record: Record) -> Path:
        """Returns when the record is on disk."""
        path = self._folder / f"{record.job_id}-{record.attempt}.json"
        write_durably(path, record.model_dump_json())
        self._sent_at.pop(path.name, None)
        self._added.set()
        return path

    def waiting(self) -> list[Path]:
        """Records without a receipt, oldest first."""
        files = self._folder.glob("*.json") if self._folder.is_dir() else ()
        return sorted(files, key=lambda path: path.stat().st_mtime)

    def nudge(self) -> None:
        """Have the sender look at once."""
        self._added.set()

    def run(self, redis: Redis, stop: threading.Event) -> None:
        """Send until `stop`; then once more, so that a clean end leaves as little as it can."""
        while not stop.is_set():
            self.send(redis)
            self._added.wait(PERIOD_S)
            self._added.clear()
        self.send(redis)

    def send(self, redis: Redis) -> None:
        """One pass: drop what the ledger has, send what is due. A Redis that is away costs time only."""
        try:
            for path in self.waiting():
                self._handle(redis, path)
        except (RedisError, FarmError, OSError) as e:
            log.warning("records wait in %s: %s", self._folder, e)

    def _handle(self, redis: Redis, path: Path) -> None:
        try:
            text = path.read_text()
            record = Record.model_validate_json(text)
        except (OSError, ValidationError) as e:
            log.error("%s is no record and is set aside: %s", path, e)
            path.rename(path.with_suffix(".unreadable"))
            return
        if redis.exists(receipt(record.job_id, record.attempt)):
            path.unlink(missing_ok=True)
            self._sent_at.pop(path.name, None)
        elif time.monotonic() >= self._sent_at.get(path.name, 0.0) + RESEND_S or path.name not in self._sent_at:
            redis.xadd(RECORDS, {"record": text}, maxlen=MAX_STREAM, approximate=True)
            self._sent_at[path.name] = time.monotonic()
