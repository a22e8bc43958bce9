"""Number the changes of leases and devices, host by host, so that the scheduler reads what changed and nothing else.

Renewals, and announcements that say the same as before, are no changes. After a wipe of Redis the epoch is another one,
and everything is read anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from redis import Redis
from redis.exceptions import RedisError

from . import keys
from .client import translated

# A count that is lost starts at the time in milliseconds: later than any number that was given before. What a host has
# made of its own keys that they should not be, is dropped.
NOTE = """
local function note(host, what)
  local count, changes = 'farm:change:' .. host, 'farm:changes:' .. host
  if redis.call('EXISTS', count) == 0 then
    redis.call('SET', count, string.format('%.0f', redis.call('TIME')[1] * 1000))
  end
  local number = redis.pcall('INCR', count)
  if type(number) ~= 'number' then redis.call('DEL', count); return end
  if type(redis.pcall('ZADD', changes, number, what)) ~= 'number' then redis.call('DEL', changes) end
end
"""
"""Defines `note(host, what)` for scripts in Lua."""
MOST = 10_000
"""Changes of a host that are read at once."""
LEASE, DEVICE = "l", "d"
"""The kind of change, in front of a device's serial."""


class ChangeLog:
    """The reader's place in each host's changes."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._seen: dict[str, float] = {}
        self._epoch = ""
        self.now = 0.0
        """Redis' clock when it was asked last, Unix time."""

    @translated
    def news(self, hosts: Iterable[str]) -> dict[str, list[str]] | None:
        """Host -> what changed there since the last call. None where Redis was wiped since, or at the first call."""
        names = sorted(set(hosts))
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.get(keys.EPOCH)
            for host in names:
                pipe.zrangebyscore(
                    keys.changes(host), f"({self._seen.get(host, 0):.0f}", "+inf", 0, MOST, withscores=True
                )
            pipe.time()
            epoch, *found, now = pipe.execute(raise_on_error=False)
        for answer in (epoch, now):
            if isinstance(answer, RedisError):
                raise answer
        self.now = float(now[0]) + float(now[1]) / 1e6
        if not epoch or epoch != self._epoch:
            self._begin()
            return None
        news = {}
        for host, changed in zip(names, found, strict=True):
            if changed and not isinstance(changed, RedisError):  # a host that spoils its own keys is found out late
                self._seen[host] = changed[-1][1]
                news[host] = [what for what, _ in changed]
        return news

    def _begin(self) -> None:
        """Begin to read from now on; what is read after this is at least as new."""
        self._redis.set(keys.EPOCH, uuid.uuid4().hex, nx=True)
        self._epoch = str(self._redis.get(keys.EPOCH))
        self._seen = {}
