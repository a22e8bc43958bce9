"""Keep records on this host until the ledger has them: for a moment in memory, then on its disk.

A record is sent to the stream at once. Where no receipt says soon that the ledger has it, it is written and flushed to
disk, at first in one file with others that are due, and removed only when the receipt comes. What the ledger had to set
aside is moved to `spool/dead/`. Nothing here reads a record: whether bytes are one is the ledger's to say. Sending
twice is harmless: the ledger keeps one record per (job, attempt).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import NamedTuple

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.coordination.record_stream import STORED, RecordStream
from orchestrator.errors import FarmError
from orchestrator.model.record import Record
from workers.bundles import Bundles
from workers.durable_files import write_all_durably, write_durably

log = logging.getLogger(__name__)
PERIOD_S = 1.0
GATHER_S = 0.03
"""Records that nobody waits for are sent together with those that come in this time."""
ANSWER_S = 0.1
"""A new record's receipt is asked for after this."""
OLDEST = 300
"""Receipts of so many in memory are asked for more often than once in `PERIOD_S`: the ledger takes them in this order,
and to ask for all that wait takes the longer the more wait."""
FLUSH_S = 0.5
"""A record that has no receipt after this goes to the disk: until then it is part of the block under way."""
BUNDLE = 4
"""So many records that are due at once are written into one file first."""
BUNDLED_S = 10.0
"""A record that has no receipt so long after gets a file of its own, and leaves the memory."""
PROBE_BYTES = 1 << 18
DEAD_S, DEAD_BYTES = 365 * 86_400.0, 1 << 30
"""What may lie in `spool/dead/` at most."""
RESEND_S = 10.0
"""A record without a receipt is asked for again after this, and sent again where the stream has lost it."""
MAX_RESEND_S = 300.0
"""Each time that a record is sent, or fails, its next turn is twice as far away, up to this."""
TOGETHER, TOGETHER_BYTES = 100, 1 << 20
"""Of records that were never sent go so many in one trip to Redis, or so many bytes and the one that exceeds them."""


class _Turn(NamedTuple):
    """When a record is looked at again, by the spool's clock."""

    due: float
    wait_s: float


class Spool:
    """The folder `state/spool`; one thread sends and one flushes, any thread may add. `clock`: monotonic, seconds."""

    def __init__(self, state: Path, host: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._host, self._clock = state / "spool", host, clock
        self._turns: dict[str, _Turn] = {}
        self._unwritten: dict[str, tuple[str, float]] = {}
        """Files that are not on disk -> their text, and when they are to be written."""
        self._unsent: dict[str, bool] = {}
        """Files of this process that Redis cannot have yet, in their order -> whether the scheduler waits for them."""
        self._new_at = deque[float]()
        """When records were added of which no receipt was asked for yet."""
        self._refused: set[str] = set()
        """Files that the disk did not take."""
        self._bundles = Bundles(self._folder)
        """Of files that are not on disk."""
        self._took_back = False
        self._reviewed_at, self._all_reviewed_at = -inf, -inf
        """When receipts were asked for last, and when those of all that wait."""
        self._added, self._awaited = threading.Event(), threading.Event()
        """There is something to do; and somebody waits for it."""
        self._flushing, self._probing = threading.Lock(), threading.Lock()

    def add(self, record: Record, *, is_awaited: bool = True) -> Path:
        """Returns at once: the record is sent from memory, and is on disk `FLUSH_S` later, unless the ledger has it by
        then. Where the disk does not take it, it is kept in memory and written as soon as the disk does. One that is
        not awaited does not wake the scheduler, and is sent a moment later."""
        path = self._folder / f"{record.job_id}-{record.attempt}.json"
        name, now = path.name, self._clock()
        self._turns.pop(name, None)
        self._unwritten[name] = record.model_dump_json(), now + FLUSH_S
        self._unsent[name] = is_awaited
        self._new_at.append(now)
        if is_awaited:
            self._awaited.set()
        self._added.set()
        return path

    def flush(self, *, everything: bool = True) -> None:
        """Write what is in memory, or only what is due, in few flushes of the disk."""
        with self._flushing:
            now = self._clock()
            due = {name: text for name, (text, at) in list(self._unwritten.items()) if everything or at <= now}
            if not everything:
                due = self._without_bundled(due, now)
            try:
                write_all_durably({self._folder / name: text for name, text in due.items()})
            except OSError as e:  # some of them may find room
                log.info("%d records one by one: %s", len(due), e)
                for name, text in due.items():
                    self._write(name, text)
            else:
                self._written(due)

    def _without_bundled(self, due: dict[str, str], now: float) -> dict[str, str]:
        """Of what is due, what is to have a file of its own now: few records, or those that were in a bundle long."""
        new = {name: text for name, text in due.items() if not self._bundles.holds(name)}
        if len(new) < BUNDLE:
            return due
        try:
            self._bundles.write(new)
        except OSError as e:
            log.info("%d records not in one file: %s", len(new), e)
            return due
        for name, text in new.items():
            if name in self._unwritten:
                self._unwritten[name] = text, now + BUNDLED_S
        self._bundles.drop(name for name in new if name not in self._unwritten)
        return {name: text for name, text in due.items() if name not in new}

    def check(self) -> str:
        """Why the disk takes no record now: no space, no right, no folder; empty where it does."""
        probe = self._folder / ".probe"
        with self._probing:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                probe.write_bytes(bytes(PROBE_BYTES))
                probe.unlink()
            except OSError as e:
                return f"{e.strerror or e}: {self._folder}"
        return ""

    def waiting(self) -> list[Path]:
        """Records without a receipt, oldest first; those that the disk did not take come last. Raises OSError."""
        return [self._folder / file for file in self._waiting()]

    def _waiting(self) -> list[str]:
        """Their files' names: of each that waits a path is made too often."""
        try:
            with os.scandir(self._folder) as entries:
                files = {entry.name: _modified(entry) for entry in entries if entry.name.endswith(".json")}
        except (FileNotFoundError, NotADirectoryError):
            files = {}
        files.update(dict.fromkeys(list(self._unwritten), float("inf")))
        return sorted(files, key=lambda name: files[name])

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

    def _pass(self, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception:  # whatever it is, the records that wait need this thread
            log.exception("a pass over %s failed and is repeated", self._folder)

    def _next_review(self) -> float:
        """When receipts are asked for: once soon after a record was new, for several at a time."""
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

    def _review(self, stream: RecordStream, *, oldest: bool = False) -> None:
        """Let go of what was answered; of all that waits, or of the oldest in memory alone."""
        self._reviewed_at = now = self._clock()
        if not oldest:
            self._all_reviewed_at = now
        try:
            files = {file: _name(file) for file in (list(self._unwritten)[:OLDEST] if oldest else self._waiting())}
            words = stream.receipts(list(files.values()))
        except (RedisError, FarmError, OSError) as e:
            log.warning("records wait in %s: %s", self._folder, e)
            return
        stored = [file for file, name in files.items() if words.get(name) in STORED]
        self._let_go(stored)
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
        if word is not None:
            self._set_aside(self._folder / file, word)
            self._forget([file])
            return
        turn = self._turns.get(file)
        if file in self._unsent or (turn is not None and self._clock() < turn.due):
            return
        if stream.holds(_name(file)):
            self._turns[file] = _Turn(self._clock() + RESEND_S, turn.wait_s if turn else RESEND_S)
        else:
            stream.send(self._body(file), _name(file))
            self._put_off(file)

    def _send_together(self, stream: RecordStream, files: Sequence[str]) -> None:
        """Where that fails, and with what is too much for one trip, their turn comes one by one."""
        bodies, size = list[tuple[bytes, str]](), 0
        try:
            for file in files:
                if size > TOGETHER_BYTES:
                    break
                bodies.append((self._body(file), _name(file)))
                size += len(bodies[-1][0])
            stream.send_all(bodies, tell=any(self._unsent.get(file, True) for file in files))
        except (RedisError, FarmError, OSError) as e:
            log.info("%d records one by one: %s", len(files), e)
            return
        for file in files[: len(bodies)]:
            self._put_off(file)

    def _body(self, file: str) -> bytes:
        known = self._unwritten.get(file)
        return (self._folder / file).read_bytes() if known is None else known[0].encode()

    def _let_go(self, files: Sequence[str]) -> None:
        """Only against a word that says that the ledger has a record does it leave this host."""
        gone = []
        for file in files:
            try:
                if file not in self._unwritten:  # what is just being written goes in the next pass
                    (self._folder / file).unlink(missing_ok=True)
            except OSError as e:
                log.error("%s waits: %s", self._folder / file, e)
                continue
            gone.append(file)
        self._forget(gone)

    def _forget(self, files: Sequence[str]) -> None:
        self._written(files)
        for file in files:
            self._turns.pop(file, None)

    def _set_aside(self, path: Path, word: str) -> None:
        with self._flushing:
            if path.name in self._unwritten:
                self._write(path.name, self._unwritten[path.name][0])
            if path.name in self._unwritten:  # no room: the ledger has it
                return
            dead = path.parent / "dead" / path.name
            dead.parent.mkdir(exist_ok=True)
            path.replace(dead)
        remove_dead(old_dead(path.parent.parent, DEAD_S, DEAD_BYTES))
        name = _name(path.name)
        log.error("the ledger could not store %s (%s): `farm records` says why; it is in %s", name, word, dead.parent)

    def _put_off(self, file: str) -> float:
        """Seconds until this record's next turn."""
        turn = self._turns.get(file)
        wait_s = turn.wait_s if turn else RESEND_S
        self._turns[file] = _Turn(self._clock() + wait_s, min(wait_s * 2, MAX_RESEND_S))
        return wait_s

    def _write(self, name: str, text: str) -> None:
        try:
            write_durably(self._folder / name, text)
        except OSError as e:
            if name not in self._refused:
                log.error("%s is kept in memory only: %s; give its disk room", self._folder / name, e)
            self._refused.add(name)
            self._unwritten[name] = text, self._clock() + PERIOD_S
        else:
            self._written([name])

    def _written(self, names: Iterable[str]) -> None:
        gone = list(names)
        for name in gone:
            self._unwritten.pop(name, None)
            self._refused.discard(name)
        self._bundles.drop(gone)

    def _take_back(self) -> None:
        """Send what an earlier process left in bundles, and what earlier versions set aside here by themselves."""
        for name, text in self._bundles.take_back().items():
            self._unwritten[name] = text, self._clock()
        for path in self._folder.glob("*.unreadable"):
            path.rename(path.with_suffix(".json"))
        self._took_back = True
        self._added.set()


def old_dead(state: Path, older_than_s: float, most_bytes: int) -> list[Path]:
    """Files of `spool/dead/` that are too old, or, the oldest first, too many bytes; the ledger has what is in them."""
    found = []
    for path in (state / "spool" / "dead").glob("*.json"):
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime, path.stat().st_size, path))
    gone, left, oldest = [], sum(size for _, size, _ in found), time.time() - older_than_s
    for modified, size, path in sorted(found):
        if modified < oldest or left > most_bytes:
            gone.append(path)
            left -= size
    return gone


def remove_dead(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _name(file: str) -> str:
    """`JOB:ATTEMPT` of a file `JOB-ATTEMPT.json`; bytes of its name that are no text are written out."""
    job, _, attempt = file.encode(errors="backslashreplace").decode().removesuffix(".json").rpartition("-")
    return f"{job}:{attempt}"


def _modified(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat().st_mtime
    except OSError:
        return float("inf")
