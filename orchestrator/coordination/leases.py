"""Leases: who may work on which device until when. Atomic in Redis (Lua), by Redis' own clock.

A lease is acquired by the scheduler with a token from the ledger, claimed once by a worker, renewed while it works, and
released; one that expires is reaped. The newest token of the last lease stays behind as a floor, so that an older token
can never replace a newer one. After a wipe of Redis the scheduler restores leases from the ledger.

A lease may be of a line of attempts, each with its own token: it then runs from a first token to a last one, and its
holder advances it from attempt to attempt. Where the scheduler ends such a lease, how far it had come stays behind too.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from pydantic import ValidationError
from redis import Redis
from redis.exceptions import RedisError

from orchestrator.errors import Unreadable
from orchestrator.model.lease import Assignment, Lease

from . import keys, lease_scripts
from .client import translated

log = logging.getLogger(__name__)

Renewal = Literal["held", "missing", "ended", "superseded"]


class Fence(NamedTuple):
    """What the last lease of a device has left."""

    floor: int
    """The newest token that Redis has seen; 0 where it has forgotten."""
    reached: int
    """The token at which the scheduler ended a line: no later one of it was begun; 0: it ended none since."""


class Leases:
    """Every method raises ServiceDown where Redis is away. Threads and processes may share the leases."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._acquire = redis.register_script(lease_scripts.ACQUIRE)
        self._claim = redis.register_script(lease_scripts.CLAIM)
        self._renew = redis.register_script(lease_scripts.RENEW)
        self._advance = redis.register_script(lease_scripts.ADVANCE)
        self._release = redis.register_script(lease_scripts.RELEASE)
        self._forget = redis.register_script(lease_scripts.FORGET)

    @translated
    def acquire(self, assignment: Assignment) -> bool:
        """Lease the device to this assignment; False where it is leased, or a token as new was seen before."""
        return bool(self._acquire((), self._arguments(assignment, "", "")))

    @translated
    def acquire_all(self, assignments: Sequence[Assignment]) -> list[bool]:
        """The same of many in one round trip."""
        with self._redis.pipeline(transaction=False) as pipe:
            for assignment in assignments:
                self._acquire((), self._arguments(assignment, "", ""), client=pipe)
            return [bool(given) for given in pipe.execute()]

    @translated
    def restore(self, assignment: Assignment, holder: str) -> bool:
        """Lease again what a wiped Redis forgot, to the worker that holds it; False where the token is not newer than
        what Redis knows: the lease is there, was released, or was superseded."""
        return bool(self._acquire((), self._arguments(assignment, holder, "restore")))

    @translated
    def claim(self, serial: str, token: int, holder: str) -> Assignment | None:
        """The assignment under this token, to the first who claims it; None to everybody else.

        Raises Unreadable, and gives the device back, where this version cannot read it.
        """
        text = self._claim((), [serial, token, holder])
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
        answer: Renewal = self._renew((), [serial, token, holder, ttl_s])
        return answer

    @translated
    def advance(self, serial: str, token: int, holder: str, to: Assignment) -> Renewal | Literal["recalled"]:
        """Go on from an attempt to one that is in line behind it; the lease is renewed. `recalled`: nothing of the line
        is to begin any more. Whatever is not `held` leaves the lease as it is."""
        answer: Renewal | Literal["recalled"] = self._advance(
            (), [serial, token, holder, to.token, to.job_id, to.attempt]
        )
        return answer

    @translated
    def standing(self, serial: str, token: int, holder: str) -> Renewal:
        """The same answer, and nothing is changed."""
        first, last, host = self._guards([serial], "token", "last", "host")[0]
        if not _number(first) <= token <= max(_number(first), _number(last)):
            return "superseded" if _number(first) > token else "missing"
        job, who = self._redis.hmget(keys.held(host or "", serial), "job_id", "holder")
        if not job:
            return "ended"
        return "held" if who == holder else "superseded"

    @translated
    def holder(self, serial: str) -> str:
        """The worker that holds a device; empty where none does."""
        host = self._guards([serial], "host")[0][0] or ""
        return self._redis.hget(keys.held(host, serial), "holder") or ""

    @translated
    def release(self, serial: str, token: int) -> bool:
        """Give the device back; False where this token does not hold it."""
        return bool(self._release((), [serial, token, ""]))

    @translated
    def withdraw(self, serial: str, token: int) -> bool:
        """The same by the scheduler: how far a line had come is known afterwards."""
        return bool(self._release((), [serial, token, "withdrawn"]))

    @translated
    def reap(self, serial: str, token: int) -> bool:
        """Free a lease if it has expired still; False where it was renewed, released or replaced meanwhile."""
        return bool(self._release((), [serial, token, "expired"]))

    @translated
    def name_farm(self) -> None:
        """Say whose tokens these are, where nobody has: each farm's are numbers of its own."""
        self._redis.set(keys.FARM, secrets.token_hex(8), nx=True)

    @translated
    def farm(self) -> str:
        """A random name of the farm whose tokens these are; empty where no scheduler has given it one."""
        return str(self._redis.get(keys.FARM) or "")

    @translated
    def all(self) -> dict[str, Lease]:
        """Every lease by serial, expired ones included."""
        return {lease.serial: lease for lease in self.everywhere().values()}

    @translated
    def some(self, names: Iterable[str]) -> dict[str, Lease | None]:
        """Of these HOST:SERIAL, each with its lease, or None."""
        wanted = sorted(set(names))
        found = dict(self._read_names(wanted))
        return {name: found.get(name) for name in wanted}

    @translated
    def everywhere(self) -> dict[str, Lease]:
        """Every lease by HOST:SERIAL, expired ones included."""
        return dict(self._read_names(sorted(self._redis.smembers(keys.LEASED))))

    @translated
    def expired(self) -> dict[str, Lease]:
        """Leases that have run out and were not reaped yet."""
        now = self.now()
        return {serial: lease for serial, lease in self.all().items() if lease.expires_at <= now}

    @translated
    def floor(self, serial: str) -> int:
        """The newest token that Redis has seen for a device; 0 where it has forgotten."""
        return self.fences([serial])[serial].floor

    @translated
    def fences(self, serials: Iterable[str]) -> dict[str, Fence]:
        """What is known of the last lease of each of these devices."""
        wanted = sorted(set(serials))
        said = ([*map(_number, told)] for told in self._guards(wanted, "token", "last", "reached"))
        return {
            serial: Fence(max(token, last), reached)
            for serial, (token, last, reached) in zip(wanted, said, strict=True)
        }

    @translated
    def now(self) -> float:
        """Redis' clock, Unix time."""
        seconds, micros = self._redis.time()
        return float(seconds) + float(micros) / 1e6

    def _guards(self, serials: Sequence[str], *names: str) -> list[Sequence[str | None]]:
        """Fields of what keeps the tokens of each of these devices; None of what is no hash."""
        with self._redis.pipeline(transaction=False) as pipe:
            for serial in serials:
                pipe.hmget(keys.lease(serial), *names)
            found = pipe.execute(raise_on_error=False)
        for each in found:
            if isinstance(each, RedisError) and not str(each).startswith("WRONGTYPE"):
                raise each
        return [[None] * len(names) if isinstance(each, RedisError) else each for each in found]

    def _read_names(self, names: Sequence[str]) -> Iterator[tuple[str, Lease]]:
        with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.hgetall(keys.held(*name.split(":", 1)))
            fields = pipe.execute(raise_on_error=False)
        if released := [name for name, lease in zip(names, fields, strict=True) if lease == {}]:
            self._forget((), released)
        for name, lease in zip(names, fields, strict=True):
            host, serial = name.split(":", 1)
            if isinstance(lease, RedisError) and not str(lease).startswith("WRONGTYPE"):
                raise lease
            try:
                if lease != {}:
                    lease.pop("ttl_s", None)
                    yield name, Lease(serial=serial, **lease)
            except (AttributeError, TypeError, ValidationError) as e:  # another type of key, or not a lease's fields
                self._discard(host, serial, str(e).partition("\n")[0])

    def _discard(self, host: str, serial: str, why: str) -> None:
        """What is no lease goes: Redis holds nothing that the ledger and the hosts' announcements do not bring back."""
        log.error("event=unreadable lease=%s discarded, as if Redis had lost it: %s", serial, why)
        with self._redis.pipeline() as pipe:
            pipe.delete(keys.lease(serial), keys.held(host, serial), keys.assignment(host, serial))
            pipe.srem(keys.LEASED, f"{host}:{serial}")
            pipe.execute()

    @staticmethod
    def _arguments(assignment: Assignment, holder: str, mode: str) -> list[str | int | float]:
        a = assignment
        text = a.model_dump_json()
        return [a.serial, a.token, a.job_id, a.attempt, a.ttl_s, text, holder, mode, a.host, a.last]


def _number(text: str | None) -> int:
    """A token; 0 of what is none, as if Redis had lost it."""
    return int(text) if text and text.isascii() and text.isdigit() else 0
