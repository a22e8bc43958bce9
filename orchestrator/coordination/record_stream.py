"""The streams of records from the hosts' spools to the ledger, one a host, and the receipts that come back.

A host alone may write its stream: that is how the ledger knows from whom a record comes. A host's own name of a record
(`JOB:ATTEMPT`, from its file) goes with it, so that bytes that cannot be read get a receipt too. Redis remembers which
names are in a stream: to ask before sending costs no bytes of a record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.model.errors import ServiceDown

from . import functions, keys
from .client import translated

NAME_S = 86_400
"""The time for which it is known that a record is in a stream, and that the ledger has set one aside."""
RECEIPT_S = 600
"""Life of a receipt that a record is stored: its host asks every second, and sends again what has no receipt."""
MAX_ENTRIES = 100_000
RECORD_BYTES, READ_BYTES = 32 << 20, 64 << 20
"""The bytes beyond which there is no record; and what is read at once."""
DEAD = "dead"
"""A receipt's word: the ledger could not store the record and has set it aside."""
STORED = ("new", "duplicate", "stale")
"""Words of a receipt after which a host need not keep its copy."""


@dataclass(frozen=True)
class Entry:
    """One record on its way: the bytes as they were sent."""

    entry_id: str
    body: bytes
    host: str
    """The host in whose stream it came."""
    name: str = ""
    """`JOB:ATTEMPT`; empty: not told."""


class RecordStream:
    """One host's. Every method raises ServiceDown where Redis is away; a record that Redis refuses is a RedisError."""

    def __init__(self, redis: Redis, host: str) -> None:
        self._redis, self.host, self._key = redis, host, keys.records(host)

    @translated
    def send(self, body: bytes, name: str) -> None:
        """Raises ServiceDown too where the stream is full."""
        self._send([self._key, self._sent(name)], [self.host, MAX_ENTRIES, NAME_S, 1, body, name])

    @translated
    def send_all(self, records: Iterable[tuple[bytes, str]], *, tell: bool = True) -> None:
        """The same of many in one trip. Where it raises, some may have been sent. Without `tell` the scheduler takes
        them in at its next turn, for which it is not woken."""
        names = [self._key]
        said: list[bytes | str | int] = [self.host, MAX_ENTRIES, NAME_S, int(tell)]
        for body, name in records:
            names.append(self._sent(name))
            said += [body, name]
        self._send(names, said)

    def _send(self, names: Sequence[str], said: Sequence[bytes | str | int]) -> None:
        if not functions.call(self._redis, "send", names, said):
            raise ServiceDown("the farm has not taken in what this host sent before: its stream in Redis is full")

    @translated
    def holds(self, name: str) -> bool:
        """Return whether the record was sent and waits in the stream still."""
        return bool(functions.call(self._redis, "holds", [self._key, self._sent(name)], ()))

    @translated
    def receipts(self, names: Sequence[str]) -> dict[str, str]:
        """The words of those that were answered, by name."""
        words = self._redis.mget([keys.receipt(self.host, name) for name in names]) if names else []
        return {name: word for name, word in zip(names, words, strict=True) if word is not None}

    @translated
    def read(self, after: str, count: int) -> list[Entry]:
        """The next entries behind one (empty: from the start), the oldest first."""
        limits = (f"({after}" if after else "-", count, READ_BYTES, RECORD_BYTES)
        # undecoded: what is no text stays as it came
        found = functions.call(self._redis, "entries", [self._key], limits, NEVER_DECODE=True)
        return [_entry(self.host, *entry) for entry in found]

    def acknowledge(self, entry: Entry, name: str, word: str) -> None:
        """Take an entry out; where its name is known, tell its host what became of it."""
        self.acknowledge_all([(entry, name, word)])

    @translated
    def acknowledge_all(self, answers: Iterable[tuple[Entry, str, str]]) -> None:
        """The same of many at once, each with its name and its word."""
        said: list[str | int] = []
        for entry, name, word in answers:
            known = (keys.receipt(self.host, name), self._sent(name)) if name else ("", "")
            said += [entry.entry_id, word, RECEIPT_S if word in STORED else NAME_S, *known]
        functions.call(self._redis, "acknowledge", [self._key], said)

    @translated
    def waiting(self) -> int:
        """Return how many records are in it."""
        return int(self._redis.xlen(self._key))

    def answers(self) -> bool:
        """Return whether Redis is there."""
        try:
            return bool(self._redis.ping())
        except RedisError:
            return False

    def _sent(self, name: str) -> str:
        return keys.sent(self.host, name)


@translated
def streams(redis: Redis) -> list[RecordStream]:
    """Return the streams of every host that has sent something."""
    hosts, others = keys.hosts_among(redis.smembers(keys.SENDERS))
    if others:
        redis.srem(keys.SENDERS, *others)
    return [RecordStream(redis, host) for host in hosts]


@translated
def forget_receipts(redis: Redis, restored: int) -> None:
    """Once after a ledger was put back: it lacks records that receipts call stored, and begins attempts anew under
    their names. `restored`: which time it was, 0 where it never was."""
    if redis.get(keys.RESTORED) == str(restored) or not (restored or redis.exists(keys.RESTORED)):
        return
    for key in redis.scan_iter(match=keys.receipt("*", "*"), count=1000):
        redis.unlink(key)
    redis.set(keys.RESTORED, restored)


def too_long(name: str, length: int) -> bytes:
    """Return what stands in the place of more than `RECORD_BYTES`: the ledger sets it aside and tells it as reason."""
    return json.dumps(f"{name}, too long for a record: {length} bytes").encode()


def _entry(host: str, entry_id: bytes, pairs: list[bytes], length: int = 0) -> Entry:
    """`length`: of what was cut, because it is longer than a record may be."""
    fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
    body, name = fields.get(b"record"), fields.get(b"name", b"").decode(errors="replace")
    if length:
        body = too_long(name, length)
    elif body is None:  # whatever it is, all of it is kept
        body = json.dumps({key.decode(errors="replace"): repr(value) for key, value in fields.items()}).encode()
    return Entry(entry_id.decode(), body, host, name)
