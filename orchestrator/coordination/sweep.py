"""Keep Redis in shape: a key of another type than it should have, or too large, goes; so does all of a host with more
than its share.

It is as if Redis had lost it, which the farm survives. A look costs Redis about a millisecond for a thousand keys.
"""

from __future__ import annotations

import logging
from collections import Counter

from redis import Redis

from . import functions, keys
from .client import translated

log = logging.getLogger(__name__)

AT_ONCE = 1000
"""Keys of one look."""


class Sweep:
    """Goes once through all keys, a part in each look. Every method raises ServiceDown where Redis is away."""

    def __init__(self, redis: Redis) -> None:
        self._redis, self._cursor = redis, 0
        self._bytes: Counter[str] = Counter()

    @translated
    def look(self, *, at_once: bool = False) -> None:
        """Look at the next keys; `at_once`: at all of them."""
        self._step()
        while at_once and self._cursor:
            self._step()

    def _step(self) -> None:
        cursor, gone, sizes = functions.call(self._redis, "sweep", (), (self._cursor, AT_ONCE))
        if gone:
            log.error("event=misshapen keys=%s: removed, as if Redis had lost them", ",".join(gone[:20]))
        self._bytes.update(dict(zip(sizes[::2], map(int, sizes[1::2]), strict=True)))
        self._cursor = int(cursor)
        if self._cursor:
            return
        for host, size in self._bytes.items():
            if size > keys.HOST_BYTES:
                log.error("event=too_much host=%s bytes=%d: all that it has in Redis is removed", host, size)
                forget_host(self._redis, host)
        self._bytes.clear()


@translated
def forget_host(redis: Redis, host: str) -> None:
    """Remove every key of a host's own: what it is to say again, it says again."""
    if host == keys.NOBODY:
        for key in redis.scan_iter(match="*.celery.pidbox", count=1000):
            redis.unlink(key)
        return
    for key in redis.scan_iter(match=f"{keys.PREFIX}*:{host}*", count=1000):
        _, word, *rest = key.split(":")
        if word in keys.KINDS and word != "lease" and rest[0] == host:
            redis.unlink(key)
    redis.unlink(keys.queue(host), f"{keys.worker(host)}.celery.pidbox")
