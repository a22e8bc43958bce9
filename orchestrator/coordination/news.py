"""Wake the scheduler: something happened about which it may decide.

A stream a host, of one entry at most, and one of the farm's own. Nothing but time is lost with an entry: the scheduler
turns anyway, every `tick_s`.
"""

from __future__ import annotations

from collections.abc import Iterable

from redis import Redis
from redis.exceptions import ResponseError

from . import keys
from .client import translated

TELL = """
local function tell(host) redis.pcall('XADD', 'farm:news:' .. host, 'MAXLEN', 1, '*', 'new', 1) end
"""
"""Defines `tell(host)` for scripts in Lua; a host that may not write the key is heard of at the next turn."""


class News:
    """The news that one reader has heard. Raises ServiceDown where Redis is away."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._heard: dict[str, str] = {}

    @translated
    def tell(self) -> None:
        """Tell the farm's own news: jobs were submitted."""
        self._redis.xadd(keys.news(""), {"new": 1}, maxlen=1, approximate=False)

    @translated
    def wait(self, hosts: Iterable[str], wait_s: float) -> bool:
        """Wait up to `wait_s` for news of a host or the farm not heard of yet; return whether there was any."""
        last = {key: self._heard.get(key, "0-0") for key in map(keys.news, ("", *hosts))}
        try:
            found = self._redis.xread(last, count=1, block=max(1, round(wait_s * 1000)))
        except ResponseError as e:
            if str(e).startswith("WRONGTYPE"):  # a host spoilt its own key: then no one is heard of before a turn
                return False
            raise
        self._heard = {**last, **{key: entries[-1][0] for key, entries in found}} if found else last
        return bool(found)
