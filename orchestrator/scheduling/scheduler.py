"""The scheduler's turn: take records in, reconcile, place waiting jobs, lease their devices, send tasks.

`python -m orchestrator.scheduling.scheduler` runs it until SIGTERM. It keeps no state of its own that matters: another
one may take over at any moment, and two at once do no harm (the ledger and the leases decide).
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from redis import Redis

from orchestrator.coordination import access, functions
from orchestrator.coordination import client as redis_client
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.coordination.client import WrongType, translated
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.news import News
from orchestrator.coordination.record_stream import forget_receipts
from orchestrator.coordination.sweep import Sweep
from orchestrator.coordination.tasks import queue
from orchestrator.coordination.tasks.periodic import ADMIT, LATE_S, NIGHTS, SWEEP, Periodic
from orchestrator.ledger import Hold, Ledger, Start
from orchestrator.ledger.said.eligible_devices import Barred, barred, has_recovered
from orchestrator.model.device import Device
from orchestrator.model.errors import FarmError, ServiceDown
from orchestrator.model.live.announcement import HostAnnouncement
from orchestrator.model.live.lease import Assignment
from orchestrator.model.live.waiting import WaitReason
from orchestrator.model.record import Outcome
from orchestrator.system.config import Settings, settings
from orchestrator.system.process import asked_to_end, begin

from .device_history import DeviceHistory
from .intake import Intake
from .lines import Lines
from .live_view import LiveView
from .placement import Placement
from .placer import BEGIN_PER_TURN, Placer
from .policies import POLICIES
from .queue_view import QueueView
from .reconcile import Reconciler
from .strategies.further_jobs import FurtherJobs

log = logging.getLogger(__name__)

MAX_BACK_OFF_S = 5.0
GATHER_S = 0.002
FEW, MANY = 4, 100
"""The least time from one turn's begin to the next one's; where one saw to more than a few records and jobs, a pause
as long as it took, up to `GATHER_MOST_S`: what comes together is decided about together. After many there is no
pause: as many have come meanwhile."""
GATHER_MOST_S = 0.05
"""A turn that lasted longer waited for a disk or a core: meanwhile enough has come."""
LISTEN_S = 0.25
"""A stop is obeyed after this."""
LOOK_S = 1.0
"""The time between two looks for periodic work that is late."""
DECIDE_S = 1.0
"""The time between questions to strategies where no attempt has ended and no lane has run dry."""


@dataclass(frozen=True)
class TickReport:
    """The result of one turn of the scheduler."""

    taken: Mapping[str, int]
    """Records by what became of them: new, duplicate, stale, dead, held."""
    placed: tuple[Assignment, ...]
    waiting: Mapping[str, WaitReason]
    """Job -> why it waits."""
    restored: int
    lost: int
    resent: int
    """Tasks that nobody had answered, sent again."""
    added: int = 0
    """Jobs that strategies asked for."""
    is_behind: bool = False
    """True if more records wait, or more jobs may begin, than a turn sees to."""


class Scheduler:
    """One turn a call; raises ServiceDown where Redis or the ledger is away, and loses nothing by it."""

    def __init__(self, farm: Settings, ledger: Ledger, redis: Redis) -> None:
        self._farm, self._ledger, self._redis = farm, ledger, redis
        self._leases, self._inventory = Leases(redis), Inventory(redis)
        self._app = queue.make_app(farm)
        self._queue, self._live = QueueView(ledger), LiveView(redis, ledger)
        self._lines, self._history = Lines(self._queue), DeviceHistory(ledger)
        self._intake = Intake(redis, ledger, self._lines.note)
        self._reconciler = Reconciler(
            ledger, redis, self._send, self._revoke, clock=time.monotonic, ttl_s=farm.lease_ttl_s
        )
        self._further = FurtherJobs(ledger, Artifacts(farm.state))
        self._placer = Placer(self._queue, POLICIES[farm.policy], ledger)
        self._devices: tuple[object, dict[str, Device]] = (None, {})
        self._held: dict[str, tuple[tuple[Hold, ...], Device]] = {}
        self._reserved: dict[str, tuple[Hold, ...]] = {}
        self._decided_at = float("-inf")
        self._down = False
        self._begun, self._sweep = False, Sweep(redis)
        self._periodic, self._looked_at = Periodic(redis), float("-inf")
        self._late_s = dict.fromkeys((SWEEP, ADMIT), LATE_S)
        """The lateness from which we do a periodic work; none after we did, until somebody else does."""
        self._news, self._hosts = News(redis), tuple[str, ...]()

    def tick(self) -> TickReport:
        """One turn: records in, reconcile, ask for further jobs, place, lease, send."""
        try:
            if self._down:
                self._reconciler.redis_was_away(self._farm.lease_ttl_s)
            report = self._turn()
        except WrongType:
            self._sweep.look(at_once=True)
            raise
        except ServiceDown:
            self._down = True
            raise
        self._down = False
        return report

    def close(self) -> None:
        """Wait for what is under way beside the turns."""
        self._further.close()

    def rest(self, stop: threading.Event, turn_s: float, did: TickReport) -> None:
        """Rest after a turn that took so long: until a host or a submission tells something, `tick_s` at most, or not
        at all where it left something."""
        if did.is_behind:
            return
        end, much = time.monotonic() + self._farm.tick_s, sum(did.taken.values()) + len(did.placed)
        if much < MANY:
            gather_s = min(turn_s, GATHER_MOST_S, self._farm.tick_s) if much > FEW else max(0.0, GATHER_S - turn_s)
            stop.wait(gather_s)
        try:
            while not stop.is_set() and (left_s := end - time.monotonic()) > 0:
                began = time.monotonic()
                if self._news.wait(self._hosts, min(left_s, LISTEN_S)):
                    return
                stop.wait(max(0.0, min(left_s, LISTEN_S) - (time.monotonic() - began)))
        except ServiceDown:  # the next turn finds out and tells
            stop.wait(max(0.0, end - time.monotonic()))

    def _turn(self) -> TickReport:
        self._keep_in_shape()
        self._ledger.end_unseen()
        taken = self._intake.drain()
        hosts = self._inventory.hosts()
        self._hosts = tuple(host.host for host in hosts)
        self._live.refresh(hosts)
        self._queue.refresh()  # after the leases: none of them then passes for a leftover
        reconciled = self._reconciler.run(hosts, self._queue, self._live)
        self._history.look(self._live.devices.values())
        devices = self._devices_for_work(hosts)
        added = self._decide()
        if added or reconciled.lost:
            self._queue.refresh()
        limits = {host.host: host.sessions for host in hosts if host.sessions}
        version = self._live.lease_version
        placement = self._placer.place(devices, reconciled.leases, version, limits, self._held, self._reserved)
        placed = self._dispatch(placement, devices)
        self._inventory.announce_waiting(placement.waiting)
        return TickReport(
            taken=Counter(taken),
            placed=placed,
            waiting=placement.waiting,
            restored=reconciled.restored,
            lost=reconciled.lost,
            resent=reconciled.resent,
            added=added,
            is_behind=self._intake.is_behind or len(placed) >= BEGIN_PER_TURN,
        )

    @translated
    def _keep_in_shape(self) -> None:
        """Give Redis what it needs before anything else: the farm's functions, keys of their types, who is let in."""
        if not self._begun:
            functions.load(self._redis)
            self._sweep.look(at_once=True)
            forget_receipts(self._redis, self._ledger.restored())
            for host in self._ledger.standing.hosts():
                if host.secret_sha256:  # by the rights of this version, also where Redis has lost its users
                    access.admit(self._redis, host.name, host.secret_sha256)
            self._begun = True
        if time.monotonic() >= self._looked_at + LOOK_S:
            self._looked_at = time.monotonic()
            self._catch_up()

    def _catch_up(self) -> None:
        """Do the periodic work that is late, since no beat sends it or nobody does it; of nights send the task."""
        for work, act in ((SWEEP, self._sweep.look), (ADMIT, self._admit)):
            is_ours = self._periodic.take(work, work.period_s / 2, self._late_s[work])
            self._late_s[work] = 0.0 if is_ours else LATE_S
            if is_ours:
                act()
        if self._periodic.take(NIGHTS, 0.0, LATE_S):
            queue.send_work(NIGHTS, by=self._app)

    def _admit(self) -> None:
        access.enter(self._redis, self._ledger.standing.admitted())

    def _decide(self) -> int:
        """Jobs that strategies ask for. Where nothing has ended there is hardly anything to ask."""
        ended, self._queue.ended = self._queue.ended, False
        if not ended and time.monotonic() - self._decided_at < DECIDE_S:
            return 0
        self._decided_at = time.monotonic()
        return self._further.run()

    def _devices_for_work(self, hosts: Sequence[HostAnnouncement]) -> dict[str, Device]:
        """Devices as placement sees them; those, and hosts, that have served their term leave quarantine."""
        bars = barred(hosts, self._ledger)
        if self._parole(bars, hosts):
            bars = barred(hosts, self._ledger)
        leases = self._live.leases
        self._reconciler.recall({each.serial for each in bars.holds if each.serial in leases and not each.is_pool})
        known = (self._live.version, bars)
        if self._devices[0] != known:
            announced = self._live.devices
            self._devices = (known, dict(zip(announced, bars.applied(list(announced.values())), strict=True)))
            self._held, self._reserved = bars.held_for(announced), bars.to_come
        return self._devices[1]

    def _parole(self, bars: Barred, hosts: Sequence[HostAnnouncement]) -> bool:
        """Give devices and hosts work again whose term is over; return whether there was one."""
        alive, freed = {host.host for host in hosts}, False
        for held in bars.quarantined_hosts:
            if held.serial in alive and held.until <= time.time() and self._ledger.standing.parole_host(held.serial):
                freed = True
                log.warning("event=probation host=%s after_s=%.0f", held.serial, time.time() - held.since)
        names = {held.serial: f"{self._live.devices[held.serial].facts.host}:{held.serial}" for held in bars.quarantined
                 if held.serial in self._live.devices}  # fmt: skip
        fresh = self._inventory.announced(names.values()) if names else {}
        for held in bars.quarantined:
            device = fresh.get(names.get(held.serial, ""))
            if device and has_recovered(held, {device.serial: device}) and self._ledger.standing.parole(held.serial):
                freed = True
                log.warning("event=probation serial=%s after_s=%.0f", held.serial, time.time() - held.since)
        return freed

    def _dispatch(self, placement: Placement, devices: Mapping[str, Device]) -> tuple[Assignment, ...]:
        """Attempts, leases, tasks: in this order, so that whatever is interrupted can be reconciled."""
        if not placement.assignments:
            return ()
        starts = self._starts(placement, devices)
        try:
            begun = self._ledger.begin_attempts(starts, self._farm.lease_ttl_s)
        except ServiceDown:
            raise
        except Exception:
            log.exception("event=not_begun jobs=%d", len(starts))
            begun = [one for start in starts if (one := self._try(start)) is not None]
        if not begun:
            return ()
        leased = self._leases.acquire_all(begun)
        placed = tuple(one for one, is_leased in zip(begun, leased, strict=True) if is_leased)
        for assignment in placed:
            self._announce(assignment)
        if refused := [one for one, is_leased in zip(begun, leased, strict=True) if not is_leased]:
            self._end_refused(refused)
        return placed

    def _end_refused(self, refused: Sequence[Assignment]) -> None:
        """A device's fence is ahead of the ledger where a token's row was damaged, or the ledger is an older copy."""
        for each in (each for one in refused for each in one.every):
            self._ledger.end_attempt(each.job_id, each.attempt, Outcome.LOST, "lease_refused")
        fences = self._leases.fences(one.serial for one in refused)
        if beyond := max((fences[a.serial].floor for a in refused if fences[a.serial].floor >= a.token), default=0):
            self._ledger.skip_tokens(beyond)

    def _starts(self, placement: Placement, devices: Mapping[str, Device]) -> list[Start]:
        of, hosts = placement.experiment_of, {s: devices[s].facts.host for _, s in placement.assignments}
        taken = {serial for serial, (holds, _) in self._held.items() if not all(each.is_pool for each in holds)}
        alone = taken | self._reserved.keys()  # they have no lines
        return [
            Start(job_id, serial, hosts[serial], 0 if serial in alone else self._lines.behind(of[job_id], serial))
            for job_id, serial in placement.assignments
        ]

    def _try(self, start: Start) -> Assignment | None:
        """One job that cannot be begun stops no other."""
        try:
            return next(iter(self._ledger.begin_attempts([start], self._farm.lease_ttl_s)), None)
        except ServiceDown:
            raise
        except Exception:
            log.exception("event=not_begun job=%s serial=%s", start.job_id, start.serial)
            return None

    def _announce(self, assignment: Assignment) -> None:
        a = assignment
        log.info(
            "event=placed job=%s attempt=%d serial=%s host=%s token=%d in_line=%d",
            a.job_id, a.attempt, a.serial, a.host, a.token, len(a.line),
        )  # fmt: skip
        self._reconciler.note_sent(a.token)
        self._send(a.host, queue.Placed(a.job_id, a.attempt, a.serial, a.token, len(a.line)))

    def _send(self, host: str, placed: queue.Placed) -> None:
        """A task that cannot be sent is sent again by the reconciler."""
        try:
            queue.send(host, placed, by=self._app)
        except ServiceDown as e:
            log.warning("event=not_sent serial=%s token=%d error=%s", placed.device, placed.token, e)

    def _revoke(self, task_ids: Collection[str]) -> None:
        """Say to workers what was cancelled; what does not arrive is found out when it is claimed."""
        if not self._farm.celery_events:
            return
        try:
            queue.revoke(task_ids, by=self._app)
        except ServiceDown as e:
            log.warning("event=not_revoked tasks=%d error=%s", len(task_ids), e)


def run(farm: Settings, stop: threading.Event) -> None:
    """Turn until `stop` is set. An outage is logged once and waited out, ever longer up to a few seconds."""
    with Ledger(farm.ledger, retries=farm.attempts) as ledger:
        scheduler = Scheduler(farm, ledger, redis_client.client_of(farm))
        pause_s, down = farm.tick_s, False
        log.info("event=started tick_s=%g lease_ttl_s=%g", farm.tick_s, farm.lease_ttl_s)
        while not stop.is_set():
            began = time.monotonic()
            try:
                did = scheduler.tick()
                if down:
                    log.warning("event=service_back")
                pause_s, down = farm.tick_s, False
            except ServiceDown as e:
                if not down:
                    log.error("event=service_down error=%s", str(e).replace("\n", " "))
                pause_s, down = min(max(pause_s * 2, farm.tick_s), MAX_BACK_OFF_S), True
            except Exception:  # nobody knows what it is: the next turn may do better, and none is done without
                log.exception("event=turn_failed retry_s=%g", pause_s)
                pause_s, down = min(max(pause_s * 2, farm.tick_s), MAX_BACK_OFF_S), True
            if down:
                stop.wait(pause_s)
            else:
                scheduler.rest(stop, time.monotonic() - began, did)
        scheduler.close()
        log.info("event=stopped")


def main() -> int:
    """Entry point: run until SIGTERM or SIGINT; exit status 1 with a message where the set-up is wrong."""
    begin()
    try:
        run(settings(), asked_to_end())
    except FarmError as e:
        log.error("event=failed error=%s", e)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
