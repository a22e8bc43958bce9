"""Intake: records from the Redis stream into the ledger, each answered with a receipt. Idempotent.

The receipt lets the worker drop the record from its spool. Only what can never be stored is set aside, in the ledger
itself (`farm records`); whatever else goes wrong, the entry stays, without a receipt, and is tried again: every moment
one copy at least is on a disk.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from dataclasses import dataclass

from redis import Redis

from orchestrator.coordination.record_stream import DEAD, Entry, RecordStream
from orchestrator.errors import ServiceDown, Unstorable
from orchestrator.ledger import Ledger

log = logging.getLogger(__name__)

BATCH = 100
PER_TURN = 300
"""Entries taken in one call: the scheduler has more to do."""
HOLD_S, MAX_HOLD_S = 1.0, 60.0
"""Wait before an entry is tried again that failed by itself; doubled each time."""


@dataclass(frozen=True)
class _Held:
    until: float
    wait_s: float


class Intake:
    """Remembers which entries failed by themselves, so that the others go on."""

    def __init__(self, redis: Redis, ledger: Ledger) -> None:
        self._stream, self._ledger = RecordStream(redis), ledger
        self._held: dict[str, _Held] = {}

    def drain(self) -> Counter[str]:
        """Take what the stream holds; returns how many were new, duplicate, stale, dead or held.

        Raises ServiceDown where Redis or the ledger is away; nothing is lost then, entries stay until they are kept.
        """
        taken: Counter[str] = Counter()
        after, seen = "", set()
        while taken.total() < PER_TURN:
            entries = self._stream.read(after, BATCH)
            for entry in entries:
                seen.add(entry.entry_id)
                if self._is_due(entry):
                    taken[self._take(entry)] += 1
            if len(entries) < BATCH:
                self._held = {entry_id: held for entry_id, held in self._held.items() if entry_id in seen}
                break
            after = entries[-1].entry_id
        return taken

    def _is_due(self, entry: Entry) -> bool:
        return entry.entry_id not in self._held or time.monotonic() >= self._held[entry.entry_id].until

    def _take(self, entry: Entry) -> str:
        name = entry.name or _said_name(entry.body)
        try:
            word = self._store(entry, name)
        except ServiceDown:
            raise
        except Exception as e:  # nobody knows whether it could be stored: it stays, and disturbs no other
            return self._hold(entry, name, e)
        self._held.pop(entry.entry_id, None)
        self._stream.acknowledge(entry, name, word)
        return word

    def _store(self, entry: Entry, name: str) -> str:
        try:
            word = str(self._ledger.offer(entry.body))
            log.info("event=record record=%s host=%s kept=%s", name, entry.host, word)
            return word
        except Unstorable as e:
            dead_id = self._ledger.set_aside(entry.body, str(e), host=entry.host or _said_host(entry.body), name=name)
            why = str(e).replace("\n", " ")
            log.error("event=record_dead id=%s record=%s host=%s error=%s", dead_id, name, entry.host, why)
            return DEAD

    def _hold(self, entry: Entry, name: str, error: Exception) -> str:
        known = self._held.get(entry.entry_id)
        wait_s = min(known.wait_s * 2, MAX_HOLD_S) if known else HOLD_S
        self._held[entry.entry_id] = _Held(time.monotonic() + wait_s, wait_s)
        log.error("event=record_held record=%s retry_s=%g error=%r", name, wait_s, error, exc_info=known is None)
        return "held"


def _said_name(body: bytes) -> str:
    """`JOB:ATTEMPT` as the bytes say it; empty where they do not."""
    said = _said(body)
    return f"{said['job_id']}:{said['attempt']}" if "job_id" in said and "attempt" in said else ""


def _said_host(body: bytes) -> str:
    device = _said(body).get("device")
    return str(device.get("host", "")) if isinstance(device, dict) else ""


def _said(body: bytes) -> dict[str, object]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
