"""From a session's claim of its lease to its record's commit, as if phones took no time.

The scheduler is a process of its own; this one is the host: it announces devices that do nothing, and when each is
leased it claims every lease, leaves a record of a real no-op job in its spool, and gives the device back. The wake-up
by Celery is left out: `peers` measures Celery alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from redis import Redis

from benchmarks.farm.scheduler_turn import devices, private_redis
from orchestrator.config import Settings
from orchestrator.coordination import client as redis_client
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.record_stream import RecordStream
from orchestrator.expansion.expand import expand
from orchestrator.ledger import Ledger, RunningRow
from orchestrator.model.device import Device
from orchestrator.model.experiment import DeviceChoice, Experiment, Workload
from orchestrator.model.lease import Assignment
from orchestrator.model.live import PROTOCOL, HostAnnouncement
from orchestrator.model.record import Record
from workers.spool import Spool

PARTS = {"scheduler": "orchestrator.scheduling.scheduler", "redis": "redis-server"}
"""Part -> the word of its command line that tells it."""
HOST, WORKER = "lab0", "lab0-1-bench"
LIMIT_S = 120.0
SESSIONS = 32
"""At once, as `farm up` has them."""


@dataclass(frozen=True)
class Committed:
    """`jobs` at once, from the first claim to the last commit, and by part."""

    jobs: int
    jobs_per_s: float
    placed_per_s: float
    """Before that: from the submission to the last lease, the scheduler's wake-ups included."""
    claimed_per_s: float
    """Claims, records handed to the spool and releases, while the scheduler commits."""
    record_kb: float
    processor_ms: dict[str, float]
    """Of the processor, a job, from the first claim to the last commit: host (this process), scheduler, redis."""


def committed(folder: Path, like: Record, jobs: int) -> Committed:
    """Every record is `like` that one. Raises TimeoutError."""
    folder.mkdir()
    with private_redis(folder) as url:
        farm = Settings(state=folder, redis_url=url.replace("redis+socket", "unix"), host=HOST, lease_ttl_s=3600)
        with Ledger(farm.ledger) as ledger, redis_client.connect(farm) as redis, _scheduler(farm):
            phones = [_of_one_host(phone) for phone in devices(jobs)]
            with _announced(redis, phones):
                began = time.monotonic()
                _submit(ledger, phones)
                _until(lambda: ledger.counts("commits").get("placed", 0) == jobs)
                placed_s = time.monotonic() - began
                running, stream, spool = ledger.running(), RecordStream(redis, HOST), Spool(farm.state, HOST)
                with _sending(spool, redis):
                    before, began = _spent_s(), time.monotonic()
                    _work(redis, running, spool, like)
                    claimed_s = time.monotonic() - began
                    _until(lambda: not stream.waiting())  # a look at the ledger takes longer, and is in the way
                    _until(lambda: ledger.counts("commits").get("ok", 0) == jobs)
                    took_s, after = time.monotonic() - began, _spent_s()
    return Committed(
        jobs,
        round(jobs / took_s),
        round(jobs / placed_s),
        round(jobs / claimed_s),
        round(len(like.model_dump_json()) / 1e3, 1),
        {part: round(1e3 * (after[part] - before[part]) / jobs, 3) for part in after},
    )


def _spent_s() -> dict[str, float]:
    """Seconds of the processor by part."""
    found = {"host": time.process_time()}
    for process in psutil.Process().children(recursive=True):
        words, times = " ".join(process.cmdline()), process.cpu_times()
        found |= {part: times.user + times.system for part, word in PARTS.items() if word in words}
    return found


@contextmanager
def _sending(spool: Spool, redis: Redis) -> Iterator[None]:
    stop = threading.Event()
    sender = threading.Thread(target=spool.run, args=(redis, stop))
    sender.start()
    try:
        yield
    finally:
        stop.set()
        spool.nudge()
        sender.join()


def _work(redis: Redis, running: list[RunningRow], spool: Spool, like: Record) -> None:
    """All sessions, as many at once as a host has threads for."""
    leases = Leases(redis)

    def session(row: RunningRow) -> None:
        assignment = leases.claim(row.serial, row.token, WORKER)
        assert assignment is not None
        spool.add(_record(like, assignment))
        leases.release(assignment.serial, assignment.token)

    with ThreadPoolExecutor(SESSIONS) as threads:
        list(threads.map(session, running))


def _record(like: Record, assignment: Assignment) -> Record:
    job = assignment.job
    own = {"experiment_id": job.experiment_id, "job_id": job.job_id, "cell_id": job.cell.cell_id, "block": job.block}
    given = {"attempt": assignment.attempt, "token": assignment.token, "worker": WORKER}
    facts = like.device.model_copy(update={"serial": assignment.serial, "host": HOST})
    return like.model_copy(update={**own, **given, "device": facts})


def _submit(ledger: Ledger, phones: list[Device]) -> None:
    """A job for each phone."""
    experiment = Experiment(name="commits", workload=Workload(network="lenet"), devices=DeviceChoice(count="all"))
    ledger.submit("commits", experiment, expand(experiment, "commits", phones).jobs)


def _of_one_host(phone: Device) -> Device:
    return phone.model_copy(update={"facts": phone.facts.model_copy(update={"host": HOST})})


@contextmanager
def _announced(redis: Redis, phones: list[Device]) -> Iterator[None]:
    """Phones that are free, on a host that is alive."""
    inventory, stop = Inventory(redis), threading.Event()

    def announce() -> None:
        while not stop.wait(1.0):
            inventory.announce_host(HostAnnouncement(host=HOST, worker=WORKER, pid=os.getpid(), protocol=PROTOCOL))

    for phone in phones:
        inventory.announce_device(phone)
    teller = threading.Thread(target=announce)
    teller.start()
    try:
        yield
    finally:
        stop.set()
        teller.join()


@contextmanager
def _scheduler(farm: Settings) -> Iterator[None]:
    own = {"FARM_STATE": str(farm.state), "FARM_REDIS_URL": farm.redis_url, "FARM_LEASE_TTL_S": str(farm.lease_ttl_s)}
    with (farm.state / "scheduler.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.scheduling.scheduler"],
            env={**os.environ, **own, "FARM_HOST": HOST}, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def _until(is_so: object) -> None:
    end = time.monotonic() + LIMIT_S
    while not is_so():  # type: ignore[operator]
        if time.monotonic() > end:
            raise TimeoutError(f"not done after {LIMIT_S:g} s")
        time.sleep(0.01)
