"""The process of one farm host: `python -m workers.host`. Discovers devices, runs sessions, sends records."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version

from redis import Redis
from redis.exceptions import RedisError

from orchestrator.coordination import keys
from orchestrator.coordination.client import client_of
from orchestrator.coordination.farm_clock import FarmClock
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.tasks.consumer import consume
from orchestrator.coordination.tasks.queue import Placed, make_app
from orchestrator.model.device import Device, Health
from orchestrator.model.errors import DeviceBusy, FarmError, LeaseLost, SetupError, TransientError
from orchestrator.model.live.announcement import PROTOCOL, HostAnnouncement
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Record
from orchestrator.system.config import Settings, settings
from orchestrator.system.process import begin

from .claim import Claim
from .connection.adb import server_of
from .devices.device_lock import device_lock
from .devices.fleet import Fleet
from .discovery.by_hand import answer_by_hand
from .discovery.crash_recovery import restore_supplies, with_left_changed
from .discovery.watch import Discovery
from .engines import Engines
from .engines import Host as EngineHost
from .execution.run_job import Workbench, run_line
from .files.host_files import HostFiles
from .files.outbox import Outbox
from .spool import Spool
from .tasks import register

log = logging.getLogger(__name__)
JOIN_S = 10.0
SPOOL_FIT_S = 0.5
"""The time for which a disk that took a record is believed to take another one; else it is kept in memory."""


class HostStopping(TransientError):
    """This worker is being ended; the job may run again, here or elsewhere."""

    cause = "host_stopping"


class Host:
    """One host: its fleet, its spool, and the sessions that tasks ask for."""

    def __init__(self, farm: Settings, redis: Redis) -> None:
        self._farm, self._redis = farm, redis
        self._leases, self._inventory, self._clock = Leases(redis), Inventory(redis), FarmClock(redis)
        self._spool = Spool(farm.state, farm.host)
        self._fleet = Fleet()
        server = server_of(farm)
        self._discovery = Discovery(self._fleet, farm, server, self._is_taken)
        self._spool_fit_until = 0.0
        self._refused: dict[str, str] = {}
        """Device that this host may not announce -> the host that does."""
        self._version = version("pocketfarm")
        self._worker = f"{farm.host}-{os.getpid()}-{secrets.token_hex(2)}"
        files = HostFiles(farm.state, farm)
        self._outbox = Outbox(farm.state, files)
        self._engines = Engines(EngineHost(farm.state, files, self._outbox.add), farm.engines)
        self._bench = Workbench(farm, self._fleet, self._engines, self._worker, self._name)
        self._stopping = threading.Event()
        """No new steps on any device."""
        self._stop = threading.Event()
        """Sessions are over: the threads may end."""

    def run(self) -> int:
        """Run until SIGTERM or SIGINT; sessions then stop their agents and put phones back. Returns the exit status."""
        restore_supplies(self._farm)
        app = make_app(self._farm)
        register(app, self.measure, self.by_hand)
        threads = [
            threading.Thread(target=self._discovery.run, args=(self._stop, self._announce), name="discovery"),
            threading.Thread(target=self._spool.run, args=(self._redis, self._stop), name="spool"),
            threading.Thread(target=self._outbox.run, args=(self._stop,), name="outbox"),
        ]
        for thread in threads:
            thread.start()
        try:
            name, queue = keys.worker(self._farm.host), keys.queue(self._farm.host)
            return consume(app, name, queue, self._farm.sessions, self._stopping.set)
        finally:
            self._stopping.set()
            self._stop.set()
            self._spool.nudge()
            for thread in threads:
                thread.join(JOIN_S)

    def measure(self, placed: Placed) -> None:
        """Claim the lease of a device and run what it says. Nothing to claim: nothing to do."""
        if self._stopping.is_set() or self._trouble():
            return
        try:
            assignment = self._leases.claim(placed.device, placed.token, self._worker)
        except FarmError as e:  # the scheduler sends it again
            log.warning("%s: not claimed: %s", placed.device, e)
            return
        if assignment is not None:
            self._serve(assignment)

    def by_hand(self, name: str) -> None:
        """Run a person's command on a phone that no session has."""
        if not self._stopping.is_set():
            answer_by_hand(self._farm, self._redis, name, self._stopping.is_set)

    def _trouble(self) -> str:
        """Return why this host must not begin a session: its record would be lost. Empty: it may."""
        if time.monotonic() < self._spool_fit_until:
            return ""
        trouble = self._spool.check()
        self._spool_fit_until = 0.0 if trouble else time.monotonic() + SPOOL_FIT_S
        if trouble:
            log.error("no work is taken: %s", trouble)
        return trouble

    def _serve(self, assignment: Assignment) -> None:
        serial = assignment.serial
        self._say_running(assignment)
        claim = Claim(self._redis, assignment, self._worker)
        try:
            with claim:
                ahead_s = self._ahead_s()
                run_line(
                    assignment,
                    self._bench,
                    lambda: self._check(claim, serial),
                    claim.report,
                    lambda record, is_over: self._keep(record.model_copy(update={"clock_ahead_s": ahead_s}), is_over),
                    lambda to: self._go_on(claim, to),
                )
            claim.release()
        except LeaseLost as e:
            log.warning("%s", e)
        finally:
            self._fleet.end(serial, claim.token)

    def _say_running(self, assignment: Assignment) -> None:
        self._fleet.start(assignment.serial, assignment.job_id, assignment.attempt, assignment.token)

    def _keep(self, record: Record, is_over: bool) -> None:
        """The device is free for others where the session is over: the scheduler waits for that, for no other."""
        self._spool.add(record, is_awaited=is_over)
        said = record.device.serial, record.job_id, record.attempt, record.outcome, record.cause
        log.info("%s: job %s attempt %d: %s %s", *said)

    def _go_on(self, claim: Claim, to: Assignment) -> bool:
        """Begin the next attempt in line; return whether it does, as it does as long as this host takes work."""
        if self._stopping.is_set() or self._trouble() or not claim.advance(to):
            return False
        self._say_running(to)
        return True

    def _ahead_s(self) -> float | None:
        """Return how far the farm's clock is ahead of ours; None where Redis does not answer."""
        try:
            return self._clock.ahead_s()
        except RedisError:
            return None

    def _check(self, claim: Claim, serial: str) -> None:
        claim.check()
        if self._stopping.is_set():
            raise HostStopping("the host's worker is being ended", device=serial)

    def _name(self) -> str:
        """Return whose tokens the leases have; a Redis that is away keeps no session from going on."""
        try:
            return self._leases.farm()
        except FarmError:
            return ""

    def _announce(self, devices: list[Device]) -> None:
        self._inventory.announce_host(
            HostAnnouncement(
                host=self._farm.host,
                worker=self._worker,
                pid=os.getpid(),
                adb=self._discovery.adb,
                running=self._fleet.running(),
                sessions=self._farm.sessions,
                protocol=PROTOCOL,
                version=self._version,
                spooled=len(self._spool.waiting()),
                seen_at=time.time(),
            )
        )
        if trouble := self._trouble():
            sick = {"health": Health.SICK, "reason": f"its host {self._farm.host} cannot keep records: {trouble}"}
            devices = [
                each.model_copy(update={"state": each.state.model_copy(update=sick)})
                if each.state.health is Health.READY
                else each
                for each in devices
            ]
        in_session = {serial for serial, *_ in self._fleet.running()}
        for device in with_left_changed(devices, self._farm.state, in_session):
            device = device.model_copy(update={"engines": self._engines.offered(device.facts)})
            self._note(device.serial, self._inventory.announce_device(device))

    def _note(self, serial: str, owner: str) -> None:
        if owner and serial not in self._refused:
            log.error("%s: host %s announces a device of this serial: ours is left alone", serial, owner)
        self._refused.pop(serial, None)
        if owner:
            self._refused[serial] = owner

    def _is_taken(self, serial: str) -> bool:
        """Return whether another host announces a device, holds its lease, or may do so: without Redis nobody knows."""
        try:
            holder = self._leases.holder(serial)
        except FarmError:
            return True
        return serial in self._refused or bool(holder and holder.rsplit("-", 2)[0] != self._farm.host)


def main() -> int:
    """Run this machine's host worker in the foreground."""
    begin()
    farm = settings()
    try:
        with client_of(farm) as redis, _only_one(farm):
            return Host(farm, redis).run()
    except SetupError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2


@contextmanager
def _only_one(farm: Settings) -> Iterator[None]:
    """One worker per host and state folder: it alone announces the host. Raises SetupError."""
    with ExitStack() as held:
        try:
            held.enter_context(device_lock(farm.state, f"host-{farm.host}", wait_s=2.0))
        except DeviceBusy as e:
            raise SetupError(
                f"a worker of host {farm.host!r} runs already with state {farm.state}",
                remedy="stop it, or set FARM_HOST to another name",
            ) from e
        yield


if __name__ == "__main__":
    sys.exit(main())
