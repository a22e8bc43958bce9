"""The scheduler's turn: take records in, reconcile, place waiting jobs, lease their devices, wake their hosts.

`python -m orchestrator.scheduling.scheduler` runs it until SIGTERM. It keeps no state of its own that matters: another
one may take over at any moment, and two at once do no harm (the ledger and the leases decide).
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redis import Redis

from orchestrator.config import Settings, settings
from orchestrator.coordination import client as redis_client
from orchestrator.coordination import queue
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.errors import FarmError, ServiceDown
from orchestrator.ledger import Ledger
from orchestrator.model.device import Device, Health
from orchestrator.model.lease import Assignment
from orchestrator.model.live import HostAnnouncement
from orchestrator.model.record import Outcome
from orchestrator.model.waiting import WaitReason
from orchestrator.private_files import UMASK

from .adaptive_rounds import Rounds
from .eligible_devices import devices_for_work, has_recovered
from .intake import Intake
from .placement import Placement, Policy, place
from .reconcile import Reconciled, Reconciler

log = logging.getLogger(__name__)

MAX_BACK_OFF_S = 5.0
MAX_REASONS = 2000
DISPATCH_PER_TURN = 64
"""Sessions begun in one turn: records and leases must not wait for a thousand of them."""
IDLE_S = 1.0
"""How long a placement that found nothing to do is believed while the same devices are free."""


@dataclass(frozen=True)
class TickReport:
    """What one turn of the scheduler did."""

    taken: Mapping[str, int]
    """Records by what became of them: new, duplicate, stale, dead, held."""
    placed: tuple[Assignment, ...]
    waiting: Mapping[str, WaitReason]
    """Job -> why it waits."""
    restored: int
    lost: int
    woken: int
    added: int = 0
    """Blocks that sequential sampling added."""


_NOTHING = Placement((), {})


@dataclass(frozen=True)
class _Idle:
    """A placement that found nothing to do, the devices that were free then, and when that was."""

    placement: Placement = _NOTHING
    free: frozenset[str] = frozenset()
    at: float = float("-inf")

    def holds(self, free: frozenset[str]) -> bool:
        return free == self.free and time.monotonic() - self.at < IDLE_S


class Scheduler:
    """One turn a call; raises ServiceDown where Redis or the ledger is away, and loses nothing by it."""

    def __init__(self, farm: Settings, ledger: Ledger, redis: Redis) -> None:
        self._farm, self._ledger = farm, ledger
        self._leases, self._inventory, self._intake = Leases(redis), Inventory(redis), Intake(redis, ledger)
        self._app = queue.make_app(farm)
        self._reconciler = Reconciler(ledger, redis, self._wake, clock=time.monotonic)
        self._rounds = Rounds(ledger)
        self._down = False
        self._last = _Idle()

    def tick(self) -> TickReport:
        """One turn: records in, reconcile, decide about further blocks, place, lease, wake."""
        try:
            if self._down:
                self._reconciler.redis_was_away(self._farm.lease_ttl_s)
            report = self._turn()
        except ServiceDown:
            self._down = True
            raise
        self._down = False
        return report

    def _turn(self) -> TickReport:
        taken = self._intake.drain()
        hosts = self._inventory.hosts()
        self._leases.name_farm()
        reconciled = self._reconciler.run(hosts)
        self._release_hosts(hosts)
        devices = self._devices(hosts)
        added = self._rounds.run()
        changed = bool(taken or reconciled.lost or reconciled.restored or added)
        placement = self._place(devices, hosts, reconciled, changed=changed)
        placed = self._dispatch(placement.assignments, devices)
        self._inventory.announce_waiting(dict(list(placement.waiting.items())[:MAX_REASONS]))
        return TickReport(
            taken=Counter(taken),
            placed=placed,
            waiting=placement.waiting,
            restored=reconciled.restored,
            lost=reconciled.lost,
            woken=reconciled.woken,
            added=added,
        )

    def _devices(self, hosts: Sequence[HostAnnouncement]) -> list[Device]:
        """Devices as placement sees them; those that have recovered leave quarantine."""
        announced = {device.serial: device for device in self._inventory.devices()}
        for held in self._ledger.quarantined():
            if has_recovered(held, announced) and self._ledger.parole(held.serial):
                log.warning("event=probation serial=%s after_s=%.0f", held.serial, time.time() - held.since)
        return devices_for_work(list(announced.values()), hosts, self._ledger)

    def _release_hosts(self, hosts: Sequence[HostAnnouncement]) -> None:
        """Hosts that have served their term and announce themselves leave quarantine."""
        alive = {host.host for host in hosts}
        for held in self._ledger.quarantined_hosts():
            if held.serial in alive and held.until <= time.time() and self._ledger.parole_host(held.serial):
                log.warning("event=probation host=%s after_s=%.0f", held.serial, time.time() - held.since)

    def _place(
        self, devices: list[Device], hosts: Sequence[HostAnnouncement], reconciled: Reconciled, *, changed: bool
    ) -> Placement:
        """Place what waits. A turn that placed nothing need not be repeated at once on the same free devices."""
        free = frozenset(d.serial for d in devices if d.state.health is Health.READY) - set(reconciled.leases)
        if not changed and self._last.holds(free):
            return self._last.placement
        waiting = self._ledger.waiting(free)
        shares = self._ledger.shares() if waiting else {}
        limits = {host.host: host.sessions for host in hosts if host.sessions}
        policy = Policy(limits, shares, reconciled.labels, reconciled.alone)
        placement = place(waiting, devices, reconciled.leases, policy, time.time())
        self._last = _Idle(placement, free, time.monotonic()) if not placement.assignments and waiting else _Idle()
        return placement

    def _dispatch(self, assignments: Sequence[tuple[str, str]], devices: list[Device]) -> tuple[Assignment, ...]:
        hosts = {device.serial: device.facts.host for device in devices}
        begun = (self._try(job_id, serial, hosts[serial]) for job_id, serial in assignments[:DISPATCH_PER_TURN])
        return tuple(assignment for assignment in begun if assignment is not None)

    def _try(self, job_id: str, serial: str, host: str) -> Assignment | None:
        """One job that cannot be begun stops no other."""
        try:
            return self._begin(job_id, serial, host)
        except ServiceDown:
            raise
        except Exception:
            log.exception("event=not_begun job=%s serial=%s", job_id, serial)
            return None

    def _begin(self, job_id: str, serial: str, host: str) -> Assignment | None:
        """Attempt, lease, wake-up: in this order, so that whatever is interrupted can be reconciled."""
        assignment = self._ledger.begin_attempt(job_id, serial, host, self._farm.lease_ttl_s)
        if assignment is None:
            return None
        if not self._leases.acquire(assignment):
            self._ledger.end_attempt(job_id, assignment.attempt, Outcome.LOST, "lease_refused")
            return None
        log.info(
            "event=placed job=%s attempt=%d serial=%s host=%s token=%d",
            job_id, assignment.attempt, serial, host, assignment.token,
        )  # fmt: skip
        self._reconciler.note_woken(assignment.token)
        self._wake(host, serial, assignment.token)
        return assignment

    def _wake(self, host: str, serial: str, token: int) -> None:
        """A wake-up that fails is sent again by the reconciler."""
        try:
            queue.wake(host, serial, token, by=self._app)
        except ServiceDown as e:
            log.warning("event=wake_failed serial=%s token=%d error=%s", serial, token, e)


def run(farm: Settings, stop: threading.Event) -> None:
    """Turn until `stop` is set. An outage is logged once and waited out, ever longer up to a few seconds."""
    with Ledger(farm.ledger, retries=farm.attempts) as ledger:
        scheduler = Scheduler(farm, ledger, redis_client.client_of(farm))
        pause_s, down = farm.tick_s, False
        log.info("event=started tick_s=%g lease_ttl_s=%g", farm.tick_s, farm.lease_ttl_s)
        while not stop.is_set():
            try:
                scheduler.tick()
                if down:
                    log.warning("event=service_back")
                pause_s, down = farm.tick_s, False
            except ServiceDown as e:
                if not down:
                    log.error("event=service_down error=%s", str(e).replace("\n", " "))
                pause_s, down = min(max(pause_s * 2, farm.tick_s), MAX_BACK_OFF_S), True
            stop.wait(pause_s)
        log.info("event=stopped")


def main() -> int:
    """Entry point: run until SIGTERM or SIGINT; exit status 1 with a message where the set-up is wrong."""
    os.umask(UMASK)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="time=%(asctime)s level=%(levelname)s logger=%(name)s %(message)s"
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        run(settings(), stop)
    except FarmError as e:
        log.error("event=failed error=%s", e)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
