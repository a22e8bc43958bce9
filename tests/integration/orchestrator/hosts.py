"""A host in the test's own process: announces devices, claims what is placed there, answers with records."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.record_stream import RecordStream
from orchestrator.model.device import Device
from orchestrator.model.live.announcement import PROTOCOL, HostAnnouncement
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

Answer = Callable[[Assignment], Record | None]


def ok(assignment: Assignment) -> Record | None:
    """A record for this assignment; None stands for a worker that dies without one."""
    return answered(assignment, Outcome.OK)


def answered(assignment: Assignment, outcome: Outcome, cause: str = "") -> Record:
    return make.record(
        assignment.job, attempt=assignment.attempt, token=assignment.token, serial=assignment.serial,
        outcome=outcome, cause=cause, started_at=time.time(), ended_at=time.time(),
    )  # fmt: skip


class Host:
    """Tasks are read from the broker's own list, so that Celery's message is the real one."""

    def __init__(self, farm: Settings, redis: Redis, devices: list[Device], answer: Answer = ok) -> None:
        self.farm, self.redis, self.devices, self.answer = farm, redis, devices, answer
        self.leases, self.inventory = Leases(redis), Inventory(redis)
        self.worker = f"{farm.host}:test"
        self.protocol = PROTOCOL
        self.running: dict[str, Assignment] = {}

    def announce(self) -> None:
        for device in self.devices:
            self.inventory.announce_device(device)
        running = tuple((a.serial, a.job_id, a.attempt, a.token) for a in self.running.values())
        self.inventory.announce_host(
            HostAnnouncement(
                host=self.farm.host,
                worker=self.worker,
                pid=1,
                running=running,
                sessions=self.farm.sessions,
                protocol=self.protocol,
                seen_at=time.time(),
            )
        )

    def tasks(self) -> int:
        """Messages that wait; taken away."""
        count = self.redis.llen(keys.queue("lab"))
        self.redis.delete(keys.queue("lab"))
        return int(count)

    def claim(self) -> list[Assignment]:
        """Claim every lease of our devices; what was claimed is running until `finish`."""
        claimed = []
        own = {device.serial for device in self.devices}
        for serial, lease in self.leases.all().items():
            if serial not in own:
                continue
            assignment = self.leases.claim(serial, lease.token, self.worker)
            if assignment is not None:
                self.running[serial] = assignment
                claimed.append(assignment)
        return claimed

    def finish(self) -> None:
        """Send the records of each running session, with those of its line, and give its device back."""
        for serial, first in list(self.running.items()):
            for assignment in first.every:
                if assignment is not first:
                    mine = self.running[serial].token
                    assert self.leases.advance(serial, mine, self.worker, assignment) == "held"
                    self.running[serial] = assignment
                record = self.answer(assignment)
                if record is None:
                    break
                send(self.redis, record, self.farm.host)
            else:
                self.leases.release(serial, assignment.token)
            del self.running[serial]


def send(redis: Redis, record: Record, host: str = "lab") -> None:
    RecordStream(redis, host).send(record.model_dump_json().encode(), f"{record.job_id}:{record.attempt}")


class HostThread(threading.Thread):
    """A host that works by itself until it is stopped."""

    def __init__(self, host: Host) -> None:
        super().__init__(daemon=True)
        self.host, self._stop_event = host, threading.Event()

    def run(self) -> None:
        while not self._stop_event.wait(0.02):
            self.host.announce()
            self.host.claim()
            self.host.finish()

    def stop(self) -> None:
        self._stop_event.set()
        self.join(60)
