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
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError
from redis import Redis

from orchestrator.model.errors import Unreadable
from orchestrator.model.live.lease import Assignment, Lease

from . import functions, keys
from .client import translated

log = logging.getLogger(__name__)

AT_ONCE = 100
"""Leases that Redis is asked for in one step."""
DISCARDED = "discarded"
Renewal = Literal["held", "missing", "ended", "superseded"]


class Fence(NamedTuple):
    """The fence that the last lease of a device has left."""

    floor: int
    """The newest token that Redis has seen; 0 where it has forgotten."""
    reached: int
    """The token at which the scheduler ended a line: no later one of it was begun; 0: it ended none since."""


class Leases:
    """Every method raises ServiceDown where Redis is away. Threads and processes may share the leases."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def _call(self, name: str, *arguments: str | float) -> Any:
        return functions.call(self._redis, name, (), arguments)

    @translated
    def acquire(self, assignment: Assignment) -> bool:
        """Lease the device to this assignment; False where it is leased, or a token as new was seen before."""
        return bool(self._call("acquire", *self._arguments(assignment, "", "")))

    @translated
    def acquire_all(self, assignments: Sequence[Assignment]) -> list[bool]:
        """The same of many in one round trip."""
        wanted = [((), self._arguments(assignment, "", "")) for assignment in assignments]
        return [bool(given) for given in functions.calls(self._redis, "acquire", wanted)]

    @translated
    def restore(self, assignment: Assignment, holder: str) -> bool:
        """Lease again what a wiped Redis forgot, to the worker that holds it; False where the token is not newer than
        what Redis knows: the lease is there, was released, or was superseded."""
        return bool(self._call("acquire", *self._arguments(assignment, holder, "restore")))

    @translated
    def claim(self, serial: str, token: int, holder: str) -> Assignment | None:
        """The assignment under this token, to the first who claims it; None to everybody else.

        Raises Unreadable, and gives the device back, where this version cannot read it.
        """
        text = self._call("claim", serial, token, holder)
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
        """Prolong a lease, for as long as it was given at most. `superseded`: another has had the device since.
        `ended`: it was released or reaped. Either way stop, and leave the device alone. `missing`: Redis has forgotten
        it; nobody else has had the device."""
        answer: Renewal = self._call("renew", serial, token, holder, ttl_s)
        return answer

    @translated
    def advance(self, serial: str, token: int, holder: str, to: Assignment) -> Renewal | Literal["recalled"]:
        """Go on from an attempt to one that is in line behind it; the lease is renewed. `recalled`: nothing of the line
        is to begin any more. Whatever is not `held` leaves the lease as it is."""
        answer: Renewal | Literal["recalled"] = self._call(
            "advance", serial, token, holder, to.token, to.job_id, to.attempt
        )
        return answer

    @translated
    def standing(self, serial: str, token: int, holder: str) -> Renewal:
        """The same answer, and nothing is changed."""
        first, last, _, host = self._fences([serial])[0]
        if not first <= token <= last:
            return "superseded" if first > token else "missing"
        job, who = self._redis.hmget(keys.held(host, serial), "job_id", "holder")
        if not job:
            return "ended"
        return "held" if who == holder else "superseded"

    @translated
    def holder(self, serial: str) -> str:
        """The worker that holds a device; empty where none does."""
        host = self._fences([serial])[0][3]
        return self._redis.hget(keys.held(host, serial), "holder") or ""

    @translated
    def release(self, serial: str, token: int) -> bool:
        """Give the device back; False where this token does not hold it."""
        return bool(self._call("release", serial, token, ""))

    @translated
    def withdraw(self, serial: str, token: int) -> bool:
        """The same by the scheduler: how far a line had come is known afterwards."""
        return bool(self._call("release", serial, token, "withdrawn"))

    @translated
    def reap(self, serial: str, token: int) -> bool:
        """Free a lease if it has expired still; False where it was renewed, released or replaced meanwhile."""
        return bool(self._call("release", serial, token, "expired"))

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
        """Return each of these HOST:SERIAL with its lease, or None. What is left of one that is not whole is
        discarded: Redis holds nothing that the ledger and the hosts' announcements do not bring back."""
        wanted = sorted({name for name in names if keys.parsed(name)})
        found = dict[str, Lease | None]()
        for start in range(0, len(wanted), AT_ONCE):
            some = wanted[start : start + AT_ONCE]
            found |= {
                name: _lease(name, answer) for name, answer in zip(some, self._call("leases", *some), strict=True)
            }
        return found

    @translated
    def everywhere(self, known: Iterable[str] = ()) -> dict[str, Lease]:
        """Every lease by HOST:SERIAL, expired ones included; also of those that are known and not in the index."""
        listed = self._redis.smembers(keys.LEASED)
        if nameless := [name for name in listed if keys.parsed(name) is None]:
            self._redis.srem(keys.LEASED, *nameless)
        return {name: lease for name, lease in self.some({*listed, *known}).items() if lease is not None}

    @translated
    def floor(self, serial: str) -> int:
        """The newest token that Redis has seen for a device; 0 where it has forgotten."""
        return self.fences([serial])[serial].floor

    @translated
    def fences(self, serials: Iterable[str]) -> dict[str, Fence]:
        """Return what is known of the last lease of each of these devices."""
        wanted = sorted(set(serials))
        said = self._fences(wanted) if wanted else []
        return {serial: Fence(last, reached) for serial, (_, last, reached, _) in zip(wanted, said, strict=True)}

    @translated
    def now(self) -> float:
        """Redis' clock, Unix time."""
        seconds, micros = self._redis.time()
        return float(seconds) + float(micros) / 1e6

    def _fences(self, serials: Sequence[str]) -> list[tuple[int, int, int, str]]:
        """First and last token of each one's last lease, how far it came, and whose it was."""
        return [
            (int(first), int(last), int(reached), host) for first, last, reached, host in self._call("fences", *serials)
        ]

    @staticmethod
    def _arguments(assignment: Assignment, holder: str, mode: str) -> list[str | int | float]:
        a = assignment
        text = a.model_dump_json()
        return [a.serial, a.token, a.job_id, a.attempt, a.ttl_s, text, holder, mode, a.host, a.last]


def _lease(name: str, answer: Any) -> Lease | None:
    if answer == DISCARDED:
        log.error("event=unreadable lease=%s discarded, as if Redis had lost it", name)
    if not isinstance(answer, list):
        return None
    token, last, job_id, attempt, holder, expires_at = answer
    return Lease(
        serial=name.partition(":")[2],
        job_id=job_id,
        attempt=int(attempt),
        token=int(token),
        last=int(last),
        holder=holder,
        expires_at=float(expires_at),
    )
