"""Intake: records from the Redis stream into the ledger, each answered with a receipt. Idempotent.

The receipt lets the worker drop the record from its spool, or not write it there. Only what can never be stored is set
aside, in the ledger itself (`farm records`); whatever else goes wrong, the entry stays, without a receipt, and is tried
again, and its host has it on its disk from then on.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redis import Redis

from orchestrator.coordination.record_stream import DEAD, Entry, RecordStream, streams
from orchestrator.errors import Forged, ServiceDown, Unstorable
from orchestrator.ledger import Ledger
from orchestrator.model.record import Record

log = logging.getLogger(__name__)

BATCH = 200
PER_TURN = 600
"""Entries taken in one call: the scheduler has more to do."""
LEAST_OF_A_HOST = 20
AT_ONCE = 200
"""Records of a transaction: other writers wait for its end."""
FORGED = Forged.cause
HOLD_S, MAX_HOLD_S = 1.0, 60.0
"""Wait before an entry is tried again that failed by itself; doubled each time."""


Key = tuple[str, str]
"""Host and number of an entry."""


@dataclass(frozen=True)
class _Held:
    until: float
    wait_s: float


class Intake:
    """Remembers which entries failed by themselves, so that the others go on."""

    def __init__(self, redis: Redis, ledger: Ledger, note: Callable[[Record], None] = lambda _: None) -> None:
        """`note` gets each record that is new, as soon as it is kept."""
        self._redis, self._ledger, self._note = redis, ledger, note
        self._held: dict[Key, _Held] = {}
        self.is_behind = False
        """Whether the last call left records in a stream that it might have taken."""

    def drain(self) -> Counter[str]:
        """Take what the streams hold; returns how many were new, duplicate, stale, dead, forged or held.

        Raises ServiceDown where Redis or the ledger is away; nothing is lost then, entries stay until they are kept.
        """
        taken: Counter[str] = Counter()
        found = streams(self._redis)
        self.is_behind = False
        for stream in found:  # each has its share: one that sends without end holds back no other
            self._drain(stream, max(PER_TURN // len(found), LEAST_OF_A_HOST), taken)
        return taken

    def _drain(self, stream: RecordStream, most: int, taken: Counter[str]) -> None:
        after, before = "", taken.total()
        seen: set[Key] = set()
        while taken.total() - before < most:
            entries = stream.read(after, min(BATCH, most))
            seen.update((entry.host, entry.entry_id) for entry in entries)
            due = [entry for entry in entries if self._is_due(entry)]
            for start in range(0, len(due), AT_ONCE):
                taken.update(self._take_all(stream, due[start : start + AT_ONCE]))
            if len(entries) < min(BATCH, most):
                self._held = {key: held for key, held in self._held.items() if key in seen or key[0] != stream.host}
                return
            after = entries[-1].entry_id
        self.is_behind = True

    def _is_due(self, entry: Entry) -> bool:
        held = self._held.get((entry.host, entry.entry_id))
        return held is None or time.monotonic() >= held.until

    def _take_all(self, stream: RecordStream, entries: Sequence[Entry]) -> list[str]:
        """In one transaction where each of them can be stored, and else by halves: so one that cannot be is found with
        few transactions, and alone."""
        if not entries:
            return []
        try:
            words = list(map(str, self._ledger.offer_all([(entry.body, entry.host) for entry in entries], self._note)))
        except ServiceDown:
            raise
        except Exception as e:  # one of them: the others are not to wait for it
            log.info("event=by_halves records=%d error=%r", len(entries), e)
            if len(entries) == 1:
                return [self._take(stream, entries[0])]
            middle = len(entries) // 2
            return [word for half in (entries[:middle], entries[middle:]) for word in self._take_all(stream, half)]
        names = [_name(entry) for entry in entries]
        stream.acknowledge_all(zip(entries, names, words, strict=True))
        for entry in entries:
            self._held.pop((entry.host, entry.entry_id), None)
        _log_kept(stream.host, names, words)
        return words

    def _take(self, stream: RecordStream, entry: Entry) -> str:
        name = _name(entry)
        try:
            word = self._store(entry, name)
        except ServiceDown:
            raise
        except Exception as e:  # nobody knows whether it could be stored: it stays, and disturbs no other
            return self._hold(entry, name, e)
        self._held.pop((entry.host, entry.entry_id), None)
        stream.acknowledge(entry, name, word if word != FORGED else DEAD)
        return word

    def _store(self, entry: Entry, name: str) -> str:
        try:
            word = str(self._ledger.offer(entry.body, entry.host))
            _log_kept(entry.host, [name], [word])
            return word
        except Unstorable as e:
            dead_id = self._ledger.dead.set_aside(entry.body, str(e), host=entry.host, name=name)
            word, why = FORGED if isinstance(e, Forged) else DEAD, str(e).replace("\n", " ")
            log.error("event=record_%s id=%s record=%s host=%s error=%s", word, dead_id, name, entry.host, why)
            return word

    def _hold(self, entry: Entry, name: str, error: Exception) -> str:
        known = self._held.get((entry.host, entry.entry_id))
        wait_s = min(known.wait_s * 2, MAX_HOLD_S) if known else HOLD_S
        self._held[entry.host, entry.entry_id] = _Held(time.monotonic() + wait_s, wait_s)
        log.error("event=record_held record=%s retry_s=%g error=%r", name, wait_s, error, exc_info=known is None)
        return "held"


def _log_kept(host: str, names: Sequence[str], words: Sequence[str]) -> None:
    """A line for each word: a line for each record took 7 % of the intake's time."""
    for word in sorted(set(words)):
        mine = [name for name, its in zip(names, words, strict=True) if its == word]
        log.info("event=records host=%s kept=%s records=%s", host, word, ",".join(mine))


def _name(entry: Entry) -> str:
    return entry.name or _said_name(entry.body)


def _said_name(body: bytes) -> str:
    """`JOB:ATTEMPT` as the bytes say it; empty where they do not."""
    said = _said(body)
    return f"{said['job_id']}:{said['attempt']}" if "job_id" in said and "attempt" in said else ""


def _said(body: bytes) -> dict[str, object]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
