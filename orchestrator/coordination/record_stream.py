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

from . import keys
from .client import translated
from .news import TELL

NAME_S = 86_400
"""How long it is known that a record is in a stream, and that the ledger has set one aside."""
RECEIPT_S = 600
"""Life of a receipt that a record is stored: its host asks every second, and sends again what has no receipt."""
MAX_ENTRIES = 100_000
DEAD = "dead"
"""A receipt's word: the ledger could not store the record and has set it aside."""
STORED = ("new", "duplicate", "stale")
"""Words of a receipt after which a host need not keep its copy."""

# KEYS: stream, then of each record that it was sent. ARGV: host, longest stream, life of the names, whether the
# scheduler is woken; then each record and its name.
_SEND = (
    TELL
    + """
redis.call('SADD', 'farm:senders', ARGV[1])
for i = 2, #KEYS do
  local record, name = ARGV[2 * i + 1], ARGV[2 * i + 2]
  local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'record', record, 'name', name)
  redis.call('SET', KEYS[i], id, 'EX', ARGV[3])
end
if ARGV[4] == '1' then tell(ARGV[1]) end
"""
)
_IN_STREAM = """
local id = redis.call('GET', KEYS[2])
return id and #redis.call('XRANGE', KEYS[1], id, id) or 0
"""
# KEYS: stream. ARGV: of each entry its number, its word, the word's life, and the keys of its receipt and of its name
# (empty: its name is not known).
_ACKNOWLEDGE = """
for i = 1, #ARGV, 5 do
  if ARGV[i + 3] ~= '' then
    redis.call('SET', ARGV[i + 3], ARGV[i + 1], 'EX', ARGV[i + 2])
    redis.call('DEL', ARGV[i + 4])
  end
  redis.call('XDEL', KEYS[1], ARGV[i])
end
"""


@dataclass(frozen=True)
class Entry:
    """One record on its way: the bytes as they were sent."""

    entry_id: str
    body: bytes
    host: str
    """In whose stream it came."""
    name: str = ""
    """`JOB:ATTEMPT`; empty: not told."""


class RecordStream:
    """One host's. Every method raises ServiceDown where Redis is away; a record that Redis refuses is a RedisError."""

    def __init__(self, redis: Redis, host: str) -> None:
        self._redis, self.host, self._key = redis, host, keys.records(host)
        self._send, self._in_stream = redis.register_script(_SEND), redis.register_script(_IN_STREAM)
        self._acknowledge = redis.register_script(_ACKNOWLEDGE)

    @translated
    def send(self, body: bytes, name: str) -> None:
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

    @translated
    def holds(self, name: str) -> bool:
        """Whether the record was sent and waits in the stream still."""
        return bool(self._in_stream([self._key, self._sent(name)], []))

    @translated
    def receipts(self, names: Sequence[str]) -> dict[str, str]:
        """The words of those that were answered, by name."""
        words = self._redis.mget([keys.receipt(self.host, name) for name in names]) if names else []
        return {name: word for name, word in zip(names, words, strict=True) if word is not None}

    @translated
    def read(self, after: str, count: int) -> list[Entry]:
        """The next entries behind one (empty: from the start), the oldest first."""
        start = f"({after}" if after else "-"
        # undecoded: what is no text stays as it came
        found = self._redis.execute_command("XRANGE", self._key, start, "+", "COUNT", count, NEVER_DECODE=True)
        return [_entry(entry_id.decode(), fields, self.host) for entry_id, fields in found]

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
        self._acknowledge([self._key], said)

    @translated
    def waiting(self) -> int:
        """How many records are in it."""
        return int(self._redis.xlen(self._key))

    def answers(self) -> bool:
        """Whether Redis is there."""
        try:
            return bool(self._redis.ping())
        except RedisError:
            return False

    def _sent(self, name: str) -> str:
        return keys.sent(self.host, name)


@translated
def streams(redis: Redis) -> list[RecordStream]:
    """Of every host that has sent something."""
    return [RecordStream(redis, host) for host in sorted(redis.smembers(keys.SENDERS))]


@translated
def forget_receipts(redis: Redis, restored: int) -> None:
    """Once after a ledger was put back: it lacks records that receipts call stored, and begins attempts anew under
    their names. `restored`: which time it was, 0 where it never was."""
    if int(redis.get(keys.RESTORED) or 0) == restored:
        return
    for key in redis.scan_iter(match=keys.receipt("*", "*"), count=1000):
        redis.unlink(key)
    redis.set(keys.RESTORED, restored)


def _entry(entry_id: str, fields: dict[bytes, bytes], host: str) -> Entry:
    body = fields.get(b"record")
    if body is None:  # whatever it is, all of it is kept
        body = json.dumps({key.decode(errors="replace"): repr(value) for key, value in fields.items()}).encode()
    return Entry(entry_id, body, host, fields.get(b"name", b"").decode(errors="replace"))
