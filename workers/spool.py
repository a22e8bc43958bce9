"""Keep records on this host's disk until the ledger has them.

A record is written and flushed to disk first, then sent to the stream, and removed only when the ledger's receipt says
that it is stored. What the ledger had to set aside is moved to `spool/dead/`. Nothing here reads a record: whether
bytes are one is the ledger's to say. Sending twice is harmless: the ledger keeps one record per (job, attempt).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.coordination.record_stream import STORED, RecordStream
from orchestrator.errors import FarmError
from orchestrator.model.record import Record
from workers.durable_files import write_durably

log = logging.getLogger(__name__)
PERIOD_S = 1.0
PROBE_BYTES = 1 << 18
DEAD_S, DEAD_BYTES = 365 * 86_400.0, 1 << 30
"""What may lie in `spool/dead/` at most."""
RESEND_S = 10.0
"""A record without a receipt is asked for again after this, and sent again where the stream has lost it."""
MAX_RESEND_S = 300.0
"""Each time that a record is sent, or fails, its next turn is twice as far away, up to this."""


TOGETHER, TOGETHER_BYTES = 100, 1 << 20
"""Of records that were never sent go so many in one trip to Redis, or so many bytes and the one that exceeds them."""


@dataclass(frozen=True)
class _Turn:
    """When a record is looked at again, by the spool's clock."""

    due: float
    wait_s: float


class Spool:
    """The folder `state/spool`; one thread sends, any thread may add. `clock`: monotonic, seconds."""

    def __init__(self, state: Path, host: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._host, self._clock = state / "spool", host, clock
        self._turns: dict[str, _Turn] = {}
        self._unwritten: dict[str, str] = {}
        self._unsent: set[str] = set()
        """Files of this process that Redis cannot have yet."""
        self._added = threading.Event()

    def add(self, record: Record) -> Path:
        """Returns when the record is on disk; where the disk does not take it, it is kept in memory, sent from there
        and written as soon as the disk does."""
        path = self._folder / f"{record.job_id}-{record.attempt}.json"
        self._turns.pop(path.name, None)
        self._unsent.add(path.name)  # before the sender can see it: else it might go twice
        self._write(path, record.model_dump_json())
        self._added.set()
        return path

    def check(self) -> str:
        """Why the disk takes no record now: no space, no right, no folder; empty where it does."""
        probe = self._folder / ".probe"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(bytes(PROBE_BYTES))
            probe.unlink()
        except OSError as e:
            return f"{e.strerror or e}: {self._folder}"
        return ""

    def waiting(self) -> list[Path]:
        """Records without a receipt, oldest first; those that the disk did not take come last. Raises OSError."""
        try:
            with os.scandir(self._folder) as entries:
                files = {entry.name: _modified(entry) for entry in entries if entry.name.endswith(".json")}
        except (FileNotFoundError, NotADirectoryError):
            files = {}
        files.update(dict.fromkeys(list(self._unwritten), float("inf")))
        return [self._folder / name for name in sorted(files, key=lambda name: files[name])]

    def nudge(self) -> None:
        """Have the sender look at once."""
        self._added.set()

    def run(self, redis: Redis, stop: threading.Event) -> None:
        """Send until `stop`; then once more, so that a clean end leaves as little as it can."""
        self._pass(self._take_back)
        while not stop.is_set():
            self._pass(lambda: self.send(redis))
            self._added.wait(PERIOD_S)
            self._added.clear()
        self._pass(lambda: self.send(redis))

    def _pass(self, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception:  # whatever it is, the records that wait need this thread
            log.exception("a pass over %s failed and is repeated", self._folder)

    def send(self, redis: Redis) -> None:
        """One pass: let go of what was answered, send what is due. A Redis that is away costs time only, and a record
        that fails by itself holds back no other."""
        for name, text in list(self._unwritten.items()):
            self._write(self._folder / name, text)
        stream = RecordStream(redis, self._host)
        try:
            paths = self.waiting()
            words = stream.receipts([_name(path) for path in paths])
        except (RedisError, FarmError, OSError) as e:
            log.warning("records wait in %s: %s", self._folder, e)
            return
        unsent = [path for path in paths if path.name in self._unsent and _name(path) not in words]
        self._unsent.difference_update(path.name for path in paths)
        for start in range(0, len(unsent), TOGETHER):
            self._send_together(stream, unsent[start : start + TOGETHER])
        for path in paths:
            try:
                self._handle(stream, path, words.get(_name(path)))
            except (RedisError, FarmError, OSError) as e:
                if not _answers(redis):
                    log.warning("records wait in %s: %s", self._folder, e)
                    return
                log.error("%s waits %.0f s: %s", path, self._put_off(path), e)

    def _handle(self, stream: RecordStream, path: Path, word: str | None) -> None:
        if word is not None:
            self._settle(path, word)
            return
        turn = self._turns.get(path.name)
        if turn is not None and self._clock() < turn.due:
            return
        if stream.holds(_name(path)):
            self._turns[path.name] = _Turn(self._clock() + RESEND_S, turn.wait_s if turn else RESEND_S)
        else:
            stream.send(self._body(path), _name(path))
            self._put_off(path)

    def _send_together(self, stream: RecordStream, paths: Sequence[Path]) -> None:
        """Where that fails, and with what is too much for one trip, their turn comes one by one."""
        bodies, size = list[tuple[bytes, str]](), 0
        try:
            for path in paths:
                if size > TOGETHER_BYTES:
                    break
                bodies.append((self._body(path), _name(path)))
                size += len(bodies[-1][0])
            stream.send_all(bodies)
        except (RedisError, FarmError, OSError) as e:
            log.info("%d records one by one: %s", len(paths), e)
            return
        for path in paths[: len(bodies)]:
            self._put_off(path)

    def _body(self, path: Path) -> bytes:
        text = self._unwritten.get(path.name)
        return path.read_bytes() if text is None else text.encode()

    def _settle(self, path: Path, word: str) -> None:
        """Only against a word that says that the ledger has the record does it leave this disk."""
        if word in STORED:
            path.unlink(missing_ok=True)
        elif path.name not in self._unwritten:
            dead = path.parent / "dead" / path.name
            dead.parent.mkdir(exist_ok=True)
            path.replace(dead)
            remove_dead(old_dead(path.parent.parent, DEAD_S, DEAD_BYTES))
            log.error("the ledger could not store %s (%s): `farm records` says why; it is in %s", path.name, word, dead)
        self._unwritten.pop(path.name, None)
        self._turns.pop(path.name, None)

    def _put_off(self, path: Path) -> float:
        """Seconds until this record's next turn."""
        turn = self._turns.get(path.name)
        wait_s = turn.wait_s if turn else RESEND_S
        self._turns[path.name] = _Turn(self._clock() + wait_s, min(wait_s * 2, MAX_RESEND_S))
        return wait_s

    def _write(self, path: Path, text: str) -> None:
        try:
            write_durably(path, text)
        except OSError as e:
            if path.name not in self._unwritten:
                log.error("%s is kept in memory only: %s; give its disk room", path, e)
            self._unwritten[path.name] = text
        else:
            self._unwritten.pop(path.name, None)

    def _take_back(self) -> None:
        """Send what earlier versions set aside here by themselves."""
        for path in self._folder.glob("*.unreadable"):
            path.rename(path.with_suffix(".json"))


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


def _name(path: Path) -> str:
    """`JOB:ATTEMPT` of a file `JOB-ATTEMPT.json`."""
    job, _, attempt = path.stem.rpartition("-")
    return f"{job}:{attempt}"


def _modified(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat().st_mtime
    except OSError:
        return float("inf")


def _answers(redis: Redis) -> bool:
    try:
        return bool(redis.ping())
    except RedisError:
        return False
