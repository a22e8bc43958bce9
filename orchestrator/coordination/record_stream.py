"""The stream of records from the hosts' spools to the ledger, and the receipts that come back.

A host's own name of a record (`JOB:ATTEMPT`, from its file) goes with it, so that bytes that cannot be read get a
receipt too. The stream remembers which names are in it: to ask before sending costs no bytes of a record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from redis import Redis

from . import keys
from .client import translated

RECEIPT_S = 86_400
MAX_ENTRIES = 100_000
DEAD = "dead"
"""A receipt's word: the ledger could not store the record and has set it aside."""
STORED = ("new", "duplicate", "stale")
"""Words of a receipt after which a host need not keep its copy."""

# KEYS: stream, sent. ARGV: record, host, name, longest stream, life of the name.
_SEND = """
local fields = {'record', ARGV[1], 'host', ARGV[2], 'name', ARGV[3]}
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[4], '*', unpack(fields))
redis.call('SET', KEYS[2], id, 'EX', ARGV[5])
"""
_IN_STREAM = """
local id = redis.call('GET', KEYS[2])
return id and #redis.call('XRANGE', KEYS[1], id, id) or 0
"""


@dataclass(frozen=True)
class Entry:
    """One record on its way: the bytes as they were sent."""

    entry_id: str
    body: bytes
    host: str = ""
    name: str = ""
    """`JOB:ATTEMPT`; empty: not told."""


class RecordStream:
    """Every method raises ServiceDown where Redis is away; a record that Redis refuses is a RedisError."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._send, self._in_stream = redis.register_script(_SEND), redis.register_script(_IN_STREAM)

    @translated
    def send(self, body: bytes, name: str, host: str) -> None:
        self._send([keys.RECORDS, keys.sent(name)], [body, host, name, MAX_ENTRIES, RECEIPT_S])

    @translated
    def holds(self, name: str) -> bool:
        """Whether the record was sent and waits in the stream still."""
        return bool(self._in_stream([keys.RECORDS, keys.sent(name)], []))

    @translated
    def receipts(self, names: Sequence[str]) -> dict[str, str]:
        """The words of those that were answered, by name."""
        words = self._redis.mget([keys.receipt(name) for name in names]) if names else []
        return {name: word for name, word in zip(names, words, strict=True) if word is not None}

    @translated
    def read(self, after: str, count: int) -> list[Entry]:
        """The next entries behind one (empty: from the start), the oldest first."""
        start = f"({after}" if after else "-"
        # undecoded: what is no text stays as it came
        found = self._redis.execute_command("XRANGE", keys.RECORDS, start, "+", "COUNT", count, NEVER_DECODE=True)
        return [_entry(entry_id.decode(), fields) for entry_id, fields in found]

    @translated
    def acknowledge(self, entry: Entry, name: str, word: str) -> None:
        """Take an entry out; where its name is known, tell its host what became of it."""
        with self._redis.pipeline() as pipe:
            if name:
                pipe.set(keys.receipt(name), word, ex=RECEIPT_S)
                pipe.delete(keys.sent(name))
            pipe.xdel(keys.RECORDS, entry.entry_id)
            pipe.execute()


def _entry(entry_id: str, fields: dict[bytes, bytes]) -> Entry:
    body = fields.get(b"record")
    if body is None:  # whatever it is, all of it is kept
        body = json.dumps({key.decode(errors="replace"): repr(value) for key, value in fields.items()}).encode()
    return Entry(entry_id, body, *(fields.get(key, b"").decode(errors="replace") for key in (b"host", b"name")))
