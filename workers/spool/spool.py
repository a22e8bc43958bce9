"""Keep records on this host until the ledger has them, and send them to it.

A record is sent to the stream at once. Where no receipt says soon that the ledger has it, it is written and flushed to
disk, at first in one file with others that are due, and removed only when the receipt comes. What the ledger had to set
aside is moved to `spool/dead/`. Nothing here reads a record: whether bytes are one is the ledger's to say. Sending
twice is harmless: the ledger keeps one record per (job, attempt).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import inf
from pathlib import Path
from typing import NamedTuple

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.coordination.record_stream import STORED, RecordStream
from orchestrator.model.errors import FarmError
from orchestrator.model.record import Record

from .body import body_of
from .kept import FLUSH_S, KeptRecords

log = logging.getLogger(__name__)
PERIOD_S = 1.0
GATHER_S = 0.03
"""Records that nobody waits for are sent together with those that come in this time."""
ANSWER_S = 0.1
"""A new record's receipt is asked for after this."""
OLDEST = 300
"""Receipts of so many in memory are asked for more often than once in `PERIOD_S`: the ledger takes them in this order,
and to ask for all that wait takes the longer the more wait."""
RESEND_S = 10.0
"""A record without a receipt is asked for again after this, and sent again where the stream has lost it."""
MAX_RESEND_S = 300.0
"""Each time that a record is sent, or fails, its next turn is twice as far away, up to this."""
TOGETHER, TOGETHER_BYTES = 100, 1 << 20
"""The most records, never sent before, in one trip to Redis, and the bytes after which no other is added."""


class _Turn(NamedTuple):
    """The time when a record is looked at again, by the spool's clock."""

    due: float
    wait_s: float


class Spool:
    """The folder `state/spool`; one thread sends and one flushes, any thread may add. `clock`: monotonic, seconds."""

    def __init__(self, state: Path, host: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._host, self._clock = host, clock
        self._folder = state / "spool"
        self._kept = KeptRecords(self._folder, clock)
        self._turns: dict[str, _Turn] = {}
        self._unsent: dict[str, bool] = {}
        """Files of this process that Redis cannot have yet, in their order -> whether the scheduler waits for them."""
        self._new_at = deque[float]()
        """The times when records were added of which no receipt was asked for yet."""
        self._took_back = False
        self._reviewed_at, self._all_reviewed_at = -inf, -inf
        """The times when receipts were asked for last, and those of all that wait."""
        self._added, self._awaited = threading.Event(), threading.Event()
        """There is something to do; and somebody waits for it."""

    def add(self, record: Record, *, is_awaited: bool = True) -> Path:
        """Returns at once: the record is sent from memory, and is on disk `FLUSH_S` later, unless the ledger has it by
        then. Where the disk does not take it, it is kept in memory and written as soon as the disk does. One that is
        not awaited does not wake the scheduler, and is sent a moment later."""
        path = self._folder / f"{record.job_id}-{record.attempt}.json"
        self._turns.pop(path.name, None)
        self._kept.put(path.name, body_of(record))
        self._unsent[path.name] = is_awaited
        self._new_at.append(self._clock())
        if is_awaited:
            self._awaited.set()
        self._added.set()
        return path

    def flush(self, *, everything: bool = True) -> None:
        """Write what is in memory, or only what is due."""
        self._kept.flush(everything=everything)

    def check(self) -> str:
        """Return why the disk takes no record now; empty where it does."""
        return self._kept.check()

    def waiting(self) -> list[Path]:
        """Records without a receipt, oldest first; those that the disk did not take come last. Raises OSError."""
        return [self._folder / file for file in self._kept.waiting()]

    def nudge(self) -> None:
        """Have the sender look at once."""
        self._awaited.set()
        self._added.set()

    def run(self, redis: Redis, stop: threading.Event) -> None:
        """Send until `stop`; then flush and send once more, so that a clean end leaves as little as it can."""
        stream = RecordStream(redis, self._host)
        flusher = threading.Thread(target=self._flush_until, args=(stop,), name="spool-flush")
        flusher.start()
        while not stop.is_set():
            self._pass(lambda: self._send_new(stream))
            if self._clock() >= self._next_review():
                soon = self._clock() < self._all_reviewed_at + PERIOD_S
                self._pass(partial(self._review, stream, oldest=soon))
            if self._added.wait(max(0.0, self._next_review() - self._clock())):
                self._awaited.wait(GATHER_S)
            self._added.clear()
            self._awaited.clear()
        flusher.join()
        self._pass(lambda: self.send(redis))

    def _flush_until(self, stop: threading.Event) -> None:
        """A thread of its own: a Redis that does not answer keeps no record from the disk."""
        self._pass(self._take_back)
        while not stop.wait(FLUSH_S / 2):
            self._pass(lambda: self.flush(everything=False))
            if not self._took_back:
                self._pass(self._take_back)
        self._pass(self.flush)

    def _take_back(self) -> None:
        self._kept.take_back()
        self._took_back = True
        self._added.set()

    def _pass(self, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception:  # whatever it is, the records that wait need this thread
            log.exception("a pass over %s failed and is repeated", self._folder)

    def _next_review(self) -> float:
        """Return when receipts are asked for: once soon after a record was new, for several at a time."""
        while self._new_at and self._new_at[0] + ANSWER_S <= self._reviewed_at:
            self._new_at.popleft()
        first = self._new_at[0] + ANSWER_S if self._new_at else inf
        return min(max(first, self._reviewed_at + ANSWER_S / 2), self._reviewed_at + PERIOD_S)

    def send(self, redis: Redis) -> None:
        """One pass: send what is new or due, let go of what was answered. A Redis that is away costs time only, and a
        record that fails by itself holds back no other."""
        stream = RecordStream(redis, self._host)
        self._send_new(stream)
        self._review(stream)

    def _send_new(self, stream: RecordStream) -> None:
        new = list(self._unsent)
        for start in range(0, len(new), TOGETHER):
            self._send_together(stream, new[start : start + TOGETHER])
        for file in new:
            self._unsent.pop(file, None)

    def _send_together(self, stream: RecordStream, files: Sequence[str]) -> None:
        """Send records together; if that fails, and with what is too much for a trip, they go one by one."""
        bodies, size = list[tuple[bytes, str]](), 0
        try:
            for file in files:
                if size > TOGETHER_BYTES:
                    break
                bodies.append((self._kept.body(file), _name(file)))
                size += len(bodies[-1][0])
            stream.send_all(bodies, tell=any(self._unsent.get(file, True) for file in files))
        except (RedisError, FarmError, OSError) as e:
            log.info("%d records one by one: %s", len(files), e)
            return
        for file in files[: len(bodies)]:
            self._put_off(file)

    def _review(self, stream: RecordStream, *, oldest: bool = False) -> None:
        """Let go of what was answered; of all that waits, or of the oldest in memory alone."""
        self._reviewed_at = now = self._clock()
        if not oldest:
            self._all_reviewed_at = now
        try:
            waiting = self._kept.in_memory()[:OLDEST] if oldest else self._kept.waiting()
            files = {file: _name(file) for file in waiting}
            words = stream.receipts(list(files.values()))
        except (RedisError, FarmError, OSError) as e:
            log.warning("records wait in %s: %s", self._folder, e)
            return
        for file in self._kept.remove([file for file, name in files.items() if words.get(name) in STORED]):
            self._turns.pop(file, None)
        for file, name in files.items():
            if (word := words.get(name)) in STORED:
                continue
            try:
                self._handle(stream, file, word)
            except (RedisError, FarmError, OSError) as e:
                if not stream.answers():
                    log.warning("records wait in %s: %s", self._folder, e)
                    return
                log.error("%s waits %.0f s: %s", self._folder / file, self._put_off(file), e)

    def _handle(self, stream: RecordStream, file: str, word: str | None) -> None:
        """Handle what the ledger has not stored: it set it aside, or has said nothing yet."""
        if word is not None:
            self._set_aside(file, word)
            return
        turn = self._turns.get(file)
        if file in self._unsent or (turn is not None and self._clock() < turn.due):
            return
        if stream.holds(_name(file)):
            self._turns[file] = _Turn(self._clock() + RESEND_S, turn.wait_s if turn else RESEND_S)
        else:
            stream.send(self._kept.body(file), _name(file))
            self._put_off(file)

    def _set_aside(self, file: str, word: str) -> None:
        dead = self._kept.set_aside(file)
        self._turns.pop(file, None)
        where = f"it is in {dead.parent}" if dead else "this host's disk has no room for a copy"
        log.error("the ledger could not store %s (%s): `farm records` says why; %s", _name(file), word, where)

    def _put_off(self, file: str) -> float:
        """Seconds until this record's next turn."""
        turn = self._turns.get(file)
        wait_s = turn.wait_s if turn else RESEND_S
        self._turns[file] = _Turn(self._clock() + wait_s, min(wait_s * 2, MAX_RESEND_S))
        return wait_s


@lru_cache(maxsize=1 << 12)  # asked for at each review, of all that wait
def _name(file: str) -> str:
    """`JOB:ATTEMPT` of a file `JOB-ATTEMPT.json`; bytes of its name that are no text are written out."""
    job, _, attempt = file.encode(errors="backslashreplace").decode().removesuffix(".json").rpartition("-")
    return f"{job}:{attempt}"
