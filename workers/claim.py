"""A claimed assignment: renews its lease, announces progress, and tells its user when it must stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import NamedTuple

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.keys import CANCELLED, ENDED
from orchestrator.coordination.leases import Leases
from orchestrator.model.device import Reading
from orchestrator.model.errors import FarmError, LeaseLost
from orchestrator.model.live.announcement import Learnt, Phase, Progress
from orchestrator.model.live.lease import Assignment

log = logging.getLogger(__name__)
REPORT_S = 0.5
"""Progress within a phase is announced no more often: a block may have 100,000 samples."""
PHASE_S = 0.1
"""Phases of short blocks are not announced: they are over before anybody has read them."""
LOOK_S = 2.0
"""No step on the device begins on older knowledge of the lease than this, where Redis answers."""
FENCE = 0.8
"""Share of a lease's life, since it was last renewed, after which its session stops: by our own clock, and before Redis
lets another have the device."""


def clock_s() -> float:
    """Return the time of this host, by a clock that also counts while the machine is suspended, as Redis' own does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class JobCancelled(FarmError):
    """A person cancelled the job; neither a fault of the job nor of the device."""

    cause = "cancelled"


class _Said(NamedTuple):
    """The last words of a session on itself: told often, and shown seldom."""

    assignment: Assignment
    phase: Phase
    since: float
    rest: Mapping[str, object]

    @property
    def progress(self) -> Progress:
        a = self.assignment
        label = f"{a.job.cell.label} #{a.job.block}"
        own = {"serial": a.serial, "job_id": a.job_id, "attempt": a.attempt, "token": a.token, "label": label}
        return Progress.model_validate({**own, "phase": self.phase, "since": self.since, **self.rest})


class Claim:
    """Context manager; renews at a third of the lease's life on a thread of its own.

    `check` raises LeaseLost from then on where the lease was released or reaped, where a newer token exists, where the
    ledger has ended the attempt, and, before anybody else can be given the device, where Redis was out of reach for
    most of the lease's life. A lease that a wiped Redis has forgotten changes nothing: the scheduler restores it.
    """

    def __init__(self, redis: Redis, assignment: Assignment, holder: str) -> None:
        self._redis, self._assignment, self._holder = redis, assignment, holder
        self._leases, self._inventory = Leases(redis), Inventory(redis)
        self._standing = threading.Lock()
        """The lock of the lease: the thread may not ask for one attempt while the session goes on to the next."""
        self._stop = threading.Event()
        self._told = threading.Event()
        """There is progress to announce, or it is over."""
        self._lost = ""
        """The reason why the lease is no longer ours; empty: it is, as far as is known."""
        self._looked_at = clock_s()
        self._renew_at = self._looked_at
        self._fence_at = self._looked_at + FENCE * assignment.ttl_s
        """The time when the session must stop, unless Redis is heard of before."""
        self._cancelled = threading.Event()
        self._said: _Said | None = None
        self._announced_at = time.time()
        """The time of the last news, at first of the claim: most short sessions end before they have announced any."""
        self._is_shown = False
        """True if Redis may have progress of this session."""
        self._thread = threading.Thread(target=self._renew, name=f"lease-{assignment.serial}", daemon=True)

    def __enter__(self) -> Claim:
        self._thread.start()
        self.report("claimed")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._told.set()
        self._thread.join(timeout=10.0)
        if self._is_shown and not self._lost:
            self._quietly(lambda: self._inventory.clear_progress(self._assignment.serial, self._assignment.host))

    def check(self) -> None:
        """Raises LeaseLost or JobCancelled; to be called before each step on the device."""
        serial = self._assignment.serial
        if not self._lost and clock_s() >= self._looked_at + LOOK_S:  # the thread was held up, as this one was
            self._quietly(self._look)
        if not self._lost and clock_s() >= self._fence_at:
            self._lost = f"its lease could not be renewed for {FENCE * self._assignment.ttl_s:g} s"
        if self._lost:
            raise LeaseLost(f"token {self._assignment.token}: {self._lost}", device=serial)
        if self._cancelled.is_set():
            raise JobCancelled("cancelled", device=serial)

    @property
    def token(self) -> int:
        """The token of the attempt that is under way."""
        return self._assignment.token

    def advance(self, to: Assignment) -> bool:
        """Go on to an attempt in line; False where it is not to begin, and no other behind it."""
        if self._lost or self._cancelled.is_set():
            return False
        with self._standing:
            a, now = self._assignment, clock_s()
            try:
                if self._leases.advance(a.serial, a.token, self._holder, to) != "held":
                    return False
            except (RedisError, FarmError) as e:
                log.warning("%s: %s", a.serial, e)
                return False
            self._assignment, self._looked_at = to, now
            self._renew_at, self._fence_at = now + a.ttl_s / 3, now + FENCE * a.ttl_s
        return True

    def report(
        self,
        phase: Phase,
        done: int = 0,
        total: int = 0,
        last_ms: float | None = None,
        reading: Reading | None = None,
        learnt: Learnt | None = None,
        /,
    ) -> None:
        """Say how far the session is; announced a moment later, and with each renewal."""
        old, now = self._said, time.time()
        since = old.since if old and old.phase == phase else now
        rest = {"done": done, "total": total, "last_ms": last_ms, "reading": reading, "learnt": learnt}
        self._said = _Said(self._assignment, phase, since, rest)
        if old is None or old.phase != phase or now >= self._announced_at + REPORT_S:
            self._told.set()

    def release(self) -> None:
        """Give the device back; a failure is the sweeper's to mend."""
        self._quietly(lambda: self._leases.release(self._assignment.serial, self._assignment.token))

    def _renew(self) -> None:
        pause_s = min(self._assignment.ttl_s / 3, 1.0)  # a cancelled job stops within a second or so
        due = clock_s() + pause_s
        while not self._lost and not self._stop.is_set():
            if self._told.wait(max(0.0, due - clock_s())) and not self._stop.wait(self._quiet_s()):
                self._told.clear()
                self._announce()
            if clock_s() >= due and not self._stop.is_set():
                self._quietly(self._look)
                due = clock_s() + pause_s

    def _quiet_s(self) -> float:
        """Return the time until progress may be announced again."""
        return min(PHASE_S, max(0.0, self._announced_at + PHASE_S - time.time()))

    def _look(self) -> None:
        """Ask Redis how the lease stands, and renew it where that is due. Raises RedisError, FarmError."""
        with self._standing:
            self._look_at(self._assignment, clock_s())

    def _look_at(self, a: Assignment, now: float) -> None:
        self._looked_at = now  # a Redis that is away is asked no more often for it
        if self._redis.sismember(CANCELLED, a.job_id):
            self._cancelled.set()
        if self._redis.sismember(ENDED, a.token):
            self._lost = "the ledger has ended the attempt"
            return
        if is_due := now >= self._renew_at:
            standing = self._leases.renew(a.serial, a.token, self._holder, a.ttl_s)
        else:
            standing = self._leases.standing(a.serial, a.token, self._holder)
        if standing in ("ended", "superseded"):
            self._lost = f"its lease is {standing}"
            return
        if is_due:
            self._renew_at, self._fence_at = now + a.ttl_s / 3, now + FENCE * a.ttl_s
            self._announce()

    def _announce(self) -> None:
        said, self._announced_at = self._said, time.time()
        if said is not None:
            self._is_shown = True
            self._quietly(lambda: self._inventory.announce_progress(said.progress, said.assignment.host))

    def _quietly(self, act: Callable[[], object]) -> None:
        try:
            act()
        except (RedisError, FarmError, ValueError) as e:  # what cannot be told ends no lease
            log.warning("%s: %s", self._assignment.serial, e)
