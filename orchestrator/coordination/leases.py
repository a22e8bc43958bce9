"""Leases: who may work on which device until when. Atomic in Redis (Lua), by Redis' own clock.

A lease is acquired by the scheduler with a token from the ledger, claimed once by a worker, renewed while it works, and
released; one that expires is reaped. The token of the last lease stays behind as a floor, so that an older token can
never replace a newer one. After a wipe of Redis the scheduler restores leases from the ledger.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Literal

from pydantic import ValidationError
from redis import Redis
from redis.exceptions import RedisError

from orchestrator.errors import Unreadable
from orchestrator.model.lease import Assignment, Lease

from . import keys
from .client import translated

log = logging.getLogger(__name__)

Renewal = Literal["held", "missing", "ended", "superseded"]

_NOW = "local t = redis.call('TIME'); local now = t[1] + t[2] / 1e6\n"
_TOKEN = "local token = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)\n"  # noqa: S105
_JOB = "local job = redis.call('HGET', KEYS[1], 'job_id')\n"
_KEEP = """
local function keep(ttl)
  local expires = string.format('%.6f', now + ttl)
  redis.call('HSET', KEYS[1], 'expires_at', expires)
  redis.call('ZADD', KEYS[3], expires, ARGV[1])
end
"""
_FREE = """
local function free()
  redis.call('HDEL', KEYS[1], 'job_id', 'attempt', 'holder', 'expires_at', 'ttl_s')
  redis.call('DEL', KEYS[2])
  redis.call('ZREM', KEYS[3], ARGV[1])
end
"""

# ARGV: serial, token, job, attempt, ttl, assignment, holder, mode. A live lease is replaced only by `restore`.
_ACQUIRE = (
    _NOW
    + _TOKEN
    + _JOB
    + _KEEP
    + """
local mine = tonumber(ARGV[2])
if token >= mine then return 0 end
local expires = tonumber(redis.call('HGET', KEYS[1], 'expires_at') or 0)
if job and expires > now and ARGV[8] ~= 'restore' then return 0 end
redis.call('HSET', KEYS[1], 'token', ARGV[2], 'job_id', ARGV[3], 'attempt', ARGV[4])
redis.call('HSET', KEYS[1], 'ttl_s', ARGV[5], 'holder', ARGV[7])
redis.call('SET', KEYS[2], ARGV[6])
keep(tonumber(ARGV[5]))
return 1
"""
)
# ARGV: serial, token, holder
_CLAIM = (
    _NOW
    + _TOKEN
    + _JOB
    + _KEEP
    + """
if not job or token ~= tonumber(ARGV[2]) then return false end
if redis.call('HGET', KEYS[1], 'holder') ~= '' then return false end
if tonumber(redis.call('HGET', KEYS[1], 'expires_at')) <= now then return false end
local assignment = redis.call('GET', KEYS[2])
if not assignment then return false end
redis.call('HSET', KEYS[1], 'holder', ARGV[3])
keep(tonumber(redis.call('HGET', KEYS[1], 'ttl_s')))
return assignment
"""
)
# ARGV: serial, token, holder, ttl
_RENEW = (
    _NOW
    + _TOKEN
    + _JOB
    + _KEEP
    + """
local mine = tonumber(ARGV[2])
if token > mine then return 'superseded' end
if token < mine then return 'missing' end
if not job then return 'ended' end
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[3] then return 'superseded' end
keep(tonumber(ARGV[4]))
return 'held'
"""
)
# ARGV: serial, token, 'expired' or ''
_RELEASE = (
    _NOW
    + _TOKEN
    + _JOB
    + _FREE
    + """
if not job or token ~= tonumber(ARGV[2]) then return 0 end
if ARGV[3] == 'expired' and tonumber(redis.call('HGET', KEYS[1], 'expires_at')) > now then return 0 end
free()
return 1
"""
)


class Leases:
    """Every method raises ServiceDown where Redis is away. Threads and processes may share the leases."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._acquire = redis.register_script(_ACQUIRE)
        self._claim = redis.register_script(_CLAIM)
        self._renew = redis.register_script(_RENEW)
        self._release = redis.register_script(_RELEASE)

    @translated
    def acquire(self, assignment: Assignment) -> bool:
        """Lease the device to this assignment; False where it is leased, or a token as new was seen before."""
        return bool(self._acquire(self._keys(assignment.serial), self._arguments(assignment, "", "")))

    @translated
    def restore(self, assignment: Assignment, holder: str) -> bool:
        """Lease again what a wiped Redis forgot, to the worker that holds it; False where the token is not newer than
        what Redis knows: the lease is there, was released, or was superseded."""
        return bool(self._acquire(self._keys(assignment.serial), self._arguments(assignment, holder, "restore")))

    @translated
    def claim(self, serial: str, token: int, holder: str) -> Assignment | None:
        """The assignment under this token, to the first who claims it; None to everybody else.

        Raises Unreadable, and gives the device back, where this version cannot read it.
        """
        text = self._claim(self._keys(serial), [serial, token, holder])
        try:
            return Assignment.model_validate_json(text) if text else None
        except ValidationError as e:
            self.release(serial, token)
            raise Unreadable(
                f"the assignment with token {token} cannot be read: {e.errors(include_input=False)[:1]!s}",
                device=serial,
                remedy="the scheduler is of another version: update pocketfarm on this host, or there",
            ) from e

    @translated
    def renew(self, serial: str, token: int, holder: str, ttl_s: float) -> Renewal:
        """Prolong a lease. `superseded`: another has had the device since. `ended`: it was released or reaped. Either
        way stop, and leave the device alone. `missing`: Redis has forgotten it; nobody else has had the device."""
        answer: Renewal = self._renew(self._keys(serial), [serial, token, holder, ttl_s])
        return answer

    @translated
    def standing(self, serial: str, token: int, holder: str) -> Renewal:
        """The same answer, and nothing is changed."""
        newest, job, who = self._redis.hmget(keys.lease(serial), "token", "job_id", "holder")
        if int(newest or 0) != token:
            return "superseded" if int(newest or 0) > token else "missing"
        if not job:
            return "ended"
        return "held" if who == holder else "superseded"

    @translated
    def holder(self, serial: str) -> str:
        """The worker that holds a device; empty where none does."""
        return self._redis.hget(keys.lease(serial), "holder") or ""

    @translated
    def release(self, serial: str, token: int) -> bool:
        """Give the device back; False where this token does not hold it."""
        return bool(self._release(self._keys(serial), [serial, token, ""]))

    @translated
    def reap(self, serial: str, token: int) -> bool:
        """Free a lease if it has expired still; False where it was renewed, released or replaced meanwhile."""
        return bool(self._release(self._keys(serial), [serial, token, "expired"]))

    @translated
    def all(self) -> dict[str, Lease]:
        """Every lease by serial, expired ones included."""
        return dict(self._read(self._redis.zrange(keys.LEASES, 0, -1)))

    @translated
    def expired(self) -> dict[str, Lease]:
        """Leases that have run out and were not reaped yet."""
        return dict(self._read(self._redis.zrangebyscore(keys.LEASES, "-inf", self.now())))

    @translated
    def floor(self, serial: str) -> int:
        """The newest token that Redis has seen for a device; 0 where it has forgotten."""
        return int(self._redis.hget(keys.lease(serial), "token") or 0)

    @translated
    def now(self) -> float:
        """Redis' clock, Unix time."""
        seconds, micros = self._redis.time()
        return float(seconds) + float(micros) / 1e6

    def _read(self, serials: list[str]) -> Iterator[tuple[str, Lease]]:
        with self._redis.pipeline(transaction=False) as pipe:
            for serial in serials:
                pipe.hgetall(keys.lease(serial))
            fields = pipe.execute(raise_on_error=False)
        for serial, lease in zip(serials, fields, strict=True):
            if isinstance(lease, RedisError) and not str(lease).startswith("WRONGTYPE"):
                raise lease
            try:
                if "job_id" in lease:
                    lease.pop("ttl_s", None)
                    yield serial, Lease(serial=serial, **lease)
            except (TypeError, ValidationError) as e:  # another type of key, or not a lease's fields
                self._discard(serial, str(e).partition("\n")[0])

    def _discard(self, serial: str, why: str) -> None:
        """What is no lease goes: Redis holds nothing that the ledger and the hosts' announcements do not bring back."""
        log.error("event=unreadable lease=%s discarded, as if Redis had lost it: %s", serial, why)
        with self._redis.pipeline() as pipe:
            pipe.delete(keys.lease(serial), keys.assignment(serial))
            pipe.zrem(keys.LEASES, serial)
            pipe.execute()

    @staticmethod
    def _keys(serial: str) -> list[str]:
        return [keys.lease(serial), keys.assignment(serial), keys.LEASES]

    @staticmethod
    def _arguments(assignment: Assignment, holder: str, mode: str) -> list[str | int | float]:
        a = assignment
        return [a.serial, a.token, a.job.job_id, a.attempt, a.ttl_s, a.model_dump_json(), holder, mode]
