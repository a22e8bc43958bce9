"""Intake: records from the Redis stream into the ledger, each answered with a receipt. Idempotent.

The receipt (`farm:kept:JOB:ATTEMPT`) lets the worker drop the record from its spool. What is no record goes to a
bounded dead-letter list and disturbs nothing else.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping

from pydantic import ValidationError
from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.client import translated
from orchestrator.errors import ServiceDown
from orchestrator.ledger import Ledger
from orchestrator.model.record import Record

log = logging.getLogger(__name__)

BATCH = 100
PER_TURN = 300
"""Entries taken in one call: the scheduler has more to do."""
RECEIPT_S = 86_400
MAX_POISON = 200
POISON = "poison"


class Intake:
    def __init__(self, redis: Redis, ledger: Ledger) -> None:
        self._redis, self._ledger = redis, ledger

    @translated
    def drain(self) -> Counter[str]:
        """Take what the stream holds; returns how many were new, duplicate, stale or poison.

        Raises ServiceDown where Redis or the ledger is away; nothing is lost then, entries stay until they are kept.
        """
        taken: Counter[str] = Counter()
        while taken.total() < PER_TURN:
            entries = self._redis.xrange(keys.RECORDS, count=BATCH)
            for entry_id, fields in entries:
                taken[self._take(entry_id, fields)] += 1
            if len(entries) < BATCH:
                break
        return taken

    def _take(self, entry_id: str, fields: Mapping[str, str]) -> str:
        try:
            record = Record.model_validate_json(fields["record"])
        except (KeyError, ValidationError) as e:
            return self._poison(entry_id, fields, f"no record: {e}")
        try:
            receipt = self._ledger.keep(record)
        except ServiceDown:
            raise
        except Exception as e:
            log.exception("event=record_refused job=%s attempt=%d", record.job_id, record.attempt)
            return self._poison(entry_id, fields, f"the ledger refuses it: {e}", record)
        log.info(
            "event=record job=%s attempt=%d serial=%s outcome=%s kept=%s",
            record.job_id, record.attempt, record.device.serial, record.outcome, receipt,
        )  # fmt: skip
        self._receipt(entry_id, record, str(receipt))
        return str(receipt)

    def _receipt(self, entry_id: str, record: Record, word: str) -> None:
        with self._redis.pipeline() as pipe:
            pipe.set(keys.receipt(record.job_id, record.attempt), word, ex=RECEIPT_S)
            pipe.xdel(keys.RECORDS, entry_id)
            pipe.execute()

    def _poison(self, entry_id: str, fields: Mapping[str, str], error: str, record: Record | None = None) -> str:
        log.error("event=poison entry=%s error=%s", entry_id, error.splitlines()[0])
        letter = json.dumps({"entry": entry_id, "error": error[:2000], "fields": dict(fields)})
        with self._redis.pipeline() as pipe:
            pipe.lpush(keys.POISON, letter)
            pipe.ltrim(keys.POISON, 0, MAX_POISON - 1)
            pipe.execute()
        if record is not None:
            self._receipt(entry_id, record, POISON)
        else:
            self._redis.xdel(keys.RECORDS, entry_id)
        return POISON
