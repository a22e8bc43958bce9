"""The time from a session's claim of its lease to its record's commit, as if phones took no time.

The scheduler is a process of its own; this one is the hosts: it announces devices that do nothing, and when each is
leased it claims every lease, leaves a record of a real no-op job in its host's spool for each attempt of its line, and
gives the device back. The wake-up by Celery is left out: `peers` measures Celery alone. Leases wait here until all are
there, longer than in a farm, and nobody is woken for them again.

    python -m benchmarks.farm.claim_to_commit RECORD.json [--jobs 2000] [--in-line 16]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import psutil
from redis import Redis

from benchmarks.command_line import run_command
from benchmarks.farm.scheduler_turn import devices, private_redis
from orchestrator.coordination import client as redis_client
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.record_stream import RecordStream
from orchestrator.ledger import Ledger, RunningRow
from orchestrator.model.device import Device
from orchestrator.model.experiment import DeviceChoice, Experiment, Sampling, Workload
from orchestrator.model.live.announcement import PROTOCOL, HostAnnouncement
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Record, SessionPlace
from orchestrator.scheduling import reconcile, scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings
from orchestrator.system.process import ALLOCATIONS
from workers.spool import Spool

PARTS = {"scheduler": "patient_scheduler", "redis": "redis-server"}
"""Part -> the word of its command line that tells it."""
SCHEDULER = "from benchmarks.farm.claim_to_commit import patient_scheduler; patient_scheduler()"
WORKER = "lab0-1-bench"
LIMIT_S = 120.0
SESSIONS = 32
"""The sessions at once, as `farm up` has them."""
TAUGHT = 3
"""Jobs after which the scheduler knows how brief they are: one alone, and a line of two."""


@dataclass(frozen=True)
class Committed:
    """`jobs` at once, from the first claim to the last commit, and by part."""

    jobs: int
    in_line: int
    """Attempts of a lease."""
    jobs_per_s: float
    placed_per_s: float
    """The rate before that: from the submission to the last lease, the scheduler's wake-ups included."""
    claimed_per_s: float
    """Claims, records handed to the spool and releases, while the scheduler commits."""
    record_kb: float
    processor_ms: dict[str, float]
    """The processor's time, a job, from the first claim to the last commit: host (this process), scheduler, redis."""


def committed(folder: Path, like: Record, jobs: int, in_line: int = 1) -> Committed:
    """Every record is `like` that one; each device has `in_line` jobs, all lines are whole. Raises TimeoutError, and
    ValueError where no lines come of such records."""
    if in_line > 1 and all(each.step == "slot" for each in like.setup):
        raise ValueError("lines need a record with set-up steps, which tell how long a block takes: give a real one")
    gc.set_threshold(ALLOCATIONS)  # as a host's process has it
    jobs -= jobs % in_line
    folder.mkdir()
    with private_redis(folder) as url:
        farm = Settings(state=folder, redis_url=url.replace("redis+socket", "unix"), host="lab0", lease_ttl_s=3600)
        with Ledger(farm.ledger) as ledger, redis_client.connect(farm) as redis, _scheduler(farm):
            phones = devices(jobs // in_line + (in_line > 1))
            hosts = sorted({phone.facts.host for phone in phones})
            with _announced(redis, hosts) as announce:
                began, done = time.monotonic(), 0
                if in_line > 1:  # one device of its own, with few jobs, teaches how brief they are
                    _submit(ledger, phones, in_line)
                    announce(phones[:1])
                    done = _teach(ledger, redis, like)
                    began = time.monotonic()
                    announce(phones[1:])
                    mine = {phone.serial for phone in phones[1:]}
                else:
                    announce(phones)
                    _submit(ledger, phones, in_line)
                    mine = {phone.serial for phone in phones}
                left = in_line - done if in_line > 1 else 0
                _until(lambda: ledger.counts("commits").get("placed", 0) == jobs + left)
                _until(lambda: mine <= Leases(redis).all().keys())  # they come after the commit of the last attempts
                placed_s = time.monotonic() - began
                announce([])
                running = [row for row in ledger.running() if row.serial in mine]
                streams = [RecordStream(redis, host) for host in hosts]
                with _sending({host: Spool(farm.state / host, host) for host in hosts}, redis) as spools:
                    before, began = _spent_s(), time.monotonic()
                    _work(redis, running, spools, like)
                    claimed_s = time.monotonic() - began
                    _until(
                        lambda: not any(stream.waiting() for stream in streams)
                    )  # a look at the ledger takes longer, and is in the way
                    _until(lambda: ledger.counts("commits").get("ok", 0) == done + jobs)
                    took_s, after = time.monotonic() - began, _spent_s()
    return Committed(
        jobs,
        in_line,
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
def _sending(spools: Mapping[str, Spool], redis: Redis) -> Iterator[Mapping[str, Spool]]:
    """`spools`: of each host."""
    stop = threading.Event()
    with ExitStack() as stack:
        for spool in spools.values():
            sender = threading.Thread(target=spool.run, args=(redis, stop))
            sender.start()
            stack.callback(sender.join)
            stack.callback(spool.nudge)
        stack.callback(stop.set)
        yield spools


def _work(redis: Redis, running: list[RunningRow], spools: Mapping[str, Spool], like: Record) -> None:
    """All sessions, as many at once as a host has threads for."""
    leases = Leases(redis)

    def session(first: RunningRow) -> None:
        assignment = leases.claim(first.serial, first.token, WORKER)
        assert assignment is not None
        mine, before = _of_device(like, first.serial, first.host), assignment
        for each in assignment.every:
            if each is not assignment:
                assert leases.advance(each.serial, before.token, WORKER, each) == "held"
            spools[first.host].add(_record(mine, each, assignment))
            before = each
        leases.release(before.serial, before.token)

    first = {row.serial: row for row in reversed(running)}
    with ThreadPoolExecutor(SESSIONS) as threads:
        list(threads.map(session, first.values()))


def _of_device(like: Record, serial: str, host: str) -> Record:
    return like.model_copy(update={"device": like.device.model_copy(update={"serial": serial, "host": host})})


def _record(like: Record, assignment: Assignment, first: Assignment) -> Record:
    job = assignment.job
    own = {
        "experiment_id": job.experiment_id,
        "job_id": assignment.job_id,
        "cell_id": job.cell.cell_id,
        "block": job.block,
    }
    given: dict[str, object] = {"attempt": assignment.attempt, "token": assignment.token, "worker": WORKER}
    if first.line:
        now = time.time()
        place = SessionPlace(first=first.token, number=1 + (assignment is not first))
        given |= {"session": place, "started_at": now - 0.01, "ended_at": now}
    return like.model_copy(update={**own, **given})


def _submit(ledger: Ledger, phones: list[Device], blocks: int) -> None:
    """Submit so many jobs for each phone."""
    experiment = Experiment.model_validate(
        {
            "name": "commits",
            "workload": Workload(network="lenet"),
            "devices": DeviceChoice(count="all"),
            "sampling": Sampling(blocks=blocks),
        }
    )
    ledger.submit("commits", experiment, expand(experiment, "commits", phones).jobs)


def _teach(ledger: Ledger, redis: Redis, like: Record) -> int:
    """Teach that this experiment's blocks are over in a moment: then they come in lines. Returns how many it took."""
    leases, sent = Leases(redis), 0
    while sent < TAUGHT:
        _until(leases.all)
        for serial, lease in leases.all().items():
            if (first := leases.claim(serial, lease.token, WORKER)) is not None:
                sent += len(first.every)
                for each in first.every:
                    record = _record(_of_device(like, serial, first.host), each, first)
                    RecordStream(redis, first.host).send(
                        record.model_dump_json().encode(), f"{record.job_id}:{record.attempt}"
                    )
                _until(lambda sent=sent: ledger.counts("commits").get("ok", 0) == sent)
                leases.release(serial, first.token)
    return sent


@contextmanager
def _announced(redis: Redis, hosts: list[str]) -> Iterator[Callable[[list[Device]], None]]:
    """Hosts that are alive, and what announces that these phones are free, again and again until others are."""
    inventory, stop = Inventory(redis), threading.Event()
    shown: list[Device] = []

    def announce() -> None:
        for second in count():
            if stop.wait(1.0):
                return
            for host in hosts:
                inventory.announce_host(HostAnnouncement(host=host, worker=WORKER, pid=os.getpid(), protocol=PROTOCOL))
            for phone in list(shown) if second % 5 == 4 else ():
                inventory.announce_device(phone)

    def announce_devices(phones: list[Device]) -> None:
        shown[:] = phones
        for phone in phones:
            inventory.announce_device(phone)

    teller = threading.Thread(target=announce)
    teller.start()
    try:
        yield announce_devices
    finally:
        stop.set()
        teller.join()


def patient_scheduler() -> None:
    """Run the scheduler; it sends no task again, since leases wait here."""
    reconcile.RESEND_S = 3600.0
    scheduler.main()


@contextmanager
def _scheduler(farm: Settings) -> Iterator[None]:
    own = {"FARM_STATE": str(farm.state), "FARM_REDIS_URL": farm.redis_url, "FARM_LEASE_TTL_S": str(farm.lease_ttl_s)}
    with (farm.state / "scheduler.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SCHEDULER],
            env={**os.environ, **own, "FARM_HOST": farm.host}, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def _until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + LIMIT_S
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"not done after {LIMIT_S:g} s")
        time.sleep(0.01)


def main() -> None:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("record", type=Path, help="JSON of a no-op job's record")
    made.add_argument("--jobs", type=int, default=2000)
    made.add_argument("--in-line", type=int, default=1)
    chosen = made.parse_args()
    like = Record.model_validate_json(chosen.record.read_bytes())
    with tempfile.TemporaryDirectory(prefix="commits-") as folder:
        print(json.dumps(asdict(committed(Path(folder) / "farm", like, chosen.jobs, chosen.in_line))))


if __name__ == "__main__":
    run_command(main)
