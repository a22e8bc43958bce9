"""A claimed assignment: renews its lease, announces progress, and tells its user when it must stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.keys import CANCELLED
from orchestrator.coordination.leases import Leases
from orchestrator.errors import FarmError, LeaseLost
from orchestrator.model.device import Reading
from orchestrator.model.lease import Assignment
from orchestrator.model.live import Phase, Progress

log = logging.getLogger(__name__)
REPORT_S = 0.5
"""Progress within a phase is announced no more often: a block may have 100,000 samples."""


class JobCancelled(FarmError):
    """A person cancelled the job; neither a fault of the job nor of the device."""

    cause = "cancelled"


class Claim:
    """Context manager; renews at a third of the lease's life on a thread of its own.

    `superseded` (a newer token exists) makes `check` raise LeaseLost from then on. A lease that is missing, or a Redis
    that is away, changes nothing: the ledger decides by the token whose record counts, and the scheduler restores it.
    """

    def __init__(self, redis: Redis, assignment: Assignment, holder: str) -> None:
        self._redis, self._assignment, self._holder = redis, assignment, holder
        self._leases, self._inventory = Leases(redis), Inventory(redis)
        self._stop = threading.Event()
        self._superseded = threading.Event()
        self._cancelled = threading.Event()
        self._progress: Progress | None = None
        self._announced_at = 0.0
        self._thread = threading.Thread(target=self._renew, name=f"lease-{assignment.serial}", daemon=True)

    def __enter__(self) -> Claim:
        self._thread.start()
        self.report("claimed")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=10.0)
        if not self._superseded.is_set():
            self._quietly(lambda: self._inventory.clear_progress(self._assignment.serial))

    def check(self) -> None:
        """Raises LeaseLost or JobCancelled; to be called before each step on the device."""
        serial = self._assignment.serial
        if self._superseded.is_set():
            raise LeaseLost(f"token {self._assignment.token} is no longer the newest", device=serial)
        if self._cancelled.is_set():
            raise JobCancelled("cancelled", device=serial)

    def report(
        self,
        phase: Phase,
        done: int = 0,
        total: int = 0,
        last_ms: float | None = None,
        reading: Reading | None = None,
        /,
    ) -> None:
        """Announce how far the session is; repeated with each renewal."""
        old, job, now = self._progress, self._assignment.job, time.time()
        since = old.since if old and old.phase == phase else now
        self._progress = Progress(
            serial=self._assignment.serial,
            job_id=job.job_id,
            attempt=self._assignment.attempt,
            token=self._assignment.token,
            label=f"{job.cell.label} #{job.block}",
            phase=phase,
            done=done,
            total=total,
            since=since,
            last_ms=last_ms,
            reading=reading,
        )
        if old is None or old.phase != phase or now >= self._announced_at + REPORT_S:
            self._announce()

    def release(self) -> None:
        """Give the device back; a failure is the sweeper's to mend."""
        self._quietly(lambda: self._leases.release(self._assignment.serial, self._assignment.token))

    def _renew(self) -> None:
        a, period_s = self._assignment, self._assignment.ttl_s / 3
        pause_s = min(period_s, 1.0)  # a cancelled job stops within a second or so
        renew_at = 0.0
        while not self._stop.wait(pause_s):
            try:
                if self._redis.sismember(CANCELLED, a.job.job_id):
                    self._cancelled.set()
                if time.monotonic() >= renew_at:
                    renew_at = time.monotonic() + period_s
                    if self._leases.renew(a.serial, a.token, self._holder, a.ttl_s) == "superseded":
                        self._superseded.set()
                        return
                    self._announce()
            except (RedisError, FarmError) as e:
                log.warning("%s: lease not renewed: %s", a.serial, e)

    def _announce(self) -> None:
        progress, self._announced_at = self._progress, time.time()
        if progress is not None:
            self._quietly(lambda: self._inventory.announce_progress(progress))

    def _quietly(self, act: Callable[[], object]) -> None:
        try:
            act()
        except (RedisError, FarmError) as e:
            log.warning("%s: %s", self._assignment.serial, e)
