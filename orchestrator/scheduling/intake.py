"""Intake: records from the Redis stream into the ledger, each answered with a receipt. Idempotent.

The receipt lets the worker drop the record from its spool, or not write it there. Only what can never be stored is set
aside, in the ledger itself (`farm records`); whatever else goes wrong, the entry stays, without a receipt, and is tried
again, and its host has it on its disk from then on.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from redis import Redis

from orchestrator.coordination.record_stream import DEAD, Entry, RecordStream, streams
from orchestrator.ledger import KeepResult, Ledger
from orchestrator.ledger.attempts import Note, Prepared
from orchestrator.ledger.incoming.dead_records import Crowded
from orchestrator.model.errors import Forged, ServiceDown, Unstorable

from .set_aside import SetAside

log = logging.getLogger(__name__)

BATCH = 200
"""Records of a transaction, for whose end other writers wait."""
PER_TURN = 600
"""Entries taken in one call: the scheduler has more to do."""
LEAST_OF_A_HOST = 20
FORGED = Forged.cause


Key = tuple[str, str]
"""Host and number of an entry."""


@dataclass(frozen=True)
class _UnderWay:
    """A batch that is being committed and answered, beside which the next one is prepared."""

    stream: RecordStream
    entries: Sequence[Entry]
    prepared: Sequence[Prepared]
    words: Sequence[KeepResult]
    end: Future[None]


class Intake:
    """Remembers which entries failed by themselves, so that the others go on."""

    def __init__(self, redis: Redis, ledger: Ledger, note: Note = lambda _: lambda: None) -> None:
        """`note` reads each record, and gives what is to be done as soon as that is kept, if it is new."""
        self._redis, self._ledger, self._note = redis, ledger, note
        self._held, self._spoilt = SetAside[Key]("record"), SetAside[str]("stream")
        self._committer = ThreadPoolExecutor(1, "intake")
        self._under_way: _UnderWay | None = None
        self.is_behind = False
        """True if the last call left records in a stream that it might have taken."""

    def drain(self) -> Counter[str]:
        """Take what the streams hold; returns how many were new, duplicate, stale, dead, forged or held.

        Raises ServiceDown where Redis or the ledger is away; nothing is lost then, entries stay until they are kept.
        """
        taken: Counter[str] = Counter()
        found = streams(self._redis)
        self.is_behind = False
        try:
            for stream in found:  # each has its share: one that sends without end holds back no other
                if self._spoilt.is_due(stream.host):
                    with self._spoilt.trying(stream.host):
                        self._drain(stream, max(PER_TURN // len(found), LEAST_OF_A_HOST), taken)
        finally:
            self._finish(taken)
        return taken

    def _drain(self, stream: RecordStream, most: int, taken: Counter[str]) -> None:
        after, tried = "", 0
        seen: set[Key] = set()
        while tried < most:
            entries = stream.read(after, min(BATCH, most))
            seen.update((entry.host, entry.entry_id) for entry in entries)
            due = [entry for entry in entries if self._held.is_due((entry.host, entry.entry_id))]
            tried += len(due)
            self._take_all(stream, due, taken)
            if len(entries) < min(BATCH, most):
                self._held.keep(lambda key: key in seen or key[0] != stream.host)
                return
            after = entries[-1].entry_id
        self.is_behind = True

    def _take_all(self, stream: RecordStream, entries: Sequence[Entry], taken: Counter[str]) -> None:
        """Take entries in one transaction where each of them can be stored, and else by halves: so one that cannot
        be is found with few transactions, and alone. Returns before the commit: `_finish` waits for it."""
        if not entries:
            return
        try:
            prepared = self._ledger.prepare([(entry.body, entry.host) for entry in entries], self._note)
            self._finish(taken)
            with ExitStack() as stack:
                words = stack.enter_context(self._ledger.keeping(prepared))
                end = self._committer.submit(_conclude, stack.pop_all(), stream, entries, words)
            self._under_way = _UnderWay(stream, entries, prepared, words, end)
        except ServiceDown:
            raise
        except Exception as e:  # one of them: the others are not to wait for it
            self._finish(taken)
            self._take_halves(stream, entries, taken, e)

    def _take_halves(
        self, stream: RecordStream, entries: Sequence[Entry], taken: Counter[str], error: Exception
    ) -> None:
        log.info("event=by_halves records=%d error=%r", len(entries), error)
        if len(entries) == 1:
            taken[self._take(stream, entries[0])] += 1
            return
        middle = len(entries) // 2
        for half in (entries[:middle], entries[middle:]):
            self._take_all(stream, half, taken)

    def _finish(self, taken: Counter[str]) -> None:
        """Wait for the batch under way, and for its halves where it could not be committed. Raises ServiceDown."""
        while (last := self._under_way) is not None:
            self._under_way = None
            try:
                last.end.result()
            except ServiceDown:
                raise
            except Exception as e:
                self._take_halves(last.stream, last.entries, taken, e)
                continue
            for entry, one, word in zip(last.entries, last.prepared, last.words, strict=True):
                self._held.release((entry.host, entry.entry_id))
                if word is KeepResult.NEW:
                    one.noted()
            _log_kept(last.stream.host, list(map(_name, last.entries)), last.words)
            taken.update(map(str, last.words))

    def _take(self, stream: RecordStream, entry: Entry) -> str:
        name = _name(entry)
        try:
            word = self._store(entry, name)
        except (ServiceDown, Crowded):  # all of its host's wait, or all
            raise
        except Exception as e:  # nobody knows whether it could be stored: it stays, and disturbs no other
            self._held.hold((entry.host, entry.entry_id), e)
            return "held"
        self._held.release((entry.host, entry.entry_id))
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


def _conclude(
    transaction: ExitStack, stream: RecordStream, entries: Sequence[Entry], words: Sequence[KeepResult]
) -> None:
    """Commit, and only then answer."""
    transaction.close()
    stream.acknowledge_all((entry, _name(entry), word) for entry, word in zip(entries, words, strict=True))


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
