"""The cost of a turn of the scheduler, by phones and waiting jobs; its ledger and its memory beside.

    python -m benchmarks.farm.scheduler_turn --phones 200 1000 --jobs 10000 --lanes any each [-o raw.json]

A Redis of its own, a SQLite ledger in an empty folder, announced devices that do nothing. While phones are free a turn
begins 64 attempts; then all are taken, and turns after a hundred changes and after none are measured. Times are of
the processor, of this process.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from redis import Redis

from benchmarks.command_line import command, run_command
from farm.parts.redis_server import find
from orchestrator.coordination import client as redis_client
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import Ledger
from orchestrator.model.device import Api, ApiFacts, Device, DeviceFacts, DeviceState, Health, Precision, Source
from orchestrator.model.experiment import DeviceChoice, Experiment, Sampling, Workload
from orchestrator.model.live.announcement import PROTOCOL, HostAnnouncement
from orchestrator.model.live.lease import Assignment
from orchestrator.model.people import COMMON
from orchestrator.model.record import Outcome
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings

Lanes = Literal["any", "each"]
START_S = 10.0
TURNS = 15
CHANGES = 100
PHONES_A_HOST = 400
BLOCKS = 1000
"""The blocks of an experiment for any phone."""


@dataclass(frozen=True)
class Turn:
    """One row; seconds of the processor are medians."""

    phones: int
    jobs: int
    lanes: Lanes
    submit_s: float
    ledger_bytes_a_job: float
    filling_s: float
    """A turn in which phones are free and as many sessions begin as may."""
    changed_s: float
    """A turn after a hundred changes: fifty sessions ended, fifty phones say something new."""
    idle_s: float
    """A turn in which nothing changed."""
    idle_worst_s: float
    memory_mb: float
    first_s: float = 0.0
    """The first turn of a scheduler, in which it reads everything."""


def devices(count: int) -> list[Device]:
    """Phones as a real host announces them, with serials of a usual length."""
    api = ApiFacts(api=Api.OPENCL, version="OpenCL 3.0", device_name="Mali-G710", precisions=(Precision.FP32,))
    facts = (
        DeviceFacts(
            serial=f"R58M{n:08d}", host=f"lab{n // PHONES_A_HOST}", kind="phone", source=Source.VIRTUAL, apis=(api,)
        )
        for n in range(count)
    )
    return [Device(facts=each, state=DeviceState(health=Health.READY)) for each in facts]


def submit(ledger: Ledger, phones: Sequence[Device], jobs: int, lanes: Lanes, projects: int = 1) -> int:
    """Experiments with so many jobs, of projects in turn; how many there are."""
    done, names = 0, [COMMON, *(f"p{n}" for n in range(1, projects))]
    for name in names[1:]:
        ledger.people.add_project(name, "")
    while done < jobs:
        blocks = min(BLOCKS, jobs - done) if lanes == "any" else 1
        choice = DeviceChoice(count="any" if lanes == "any" else "all")
        experiment = Experiment(
            name="turn", workload=Workload(network="lenet"), sampling=Sampling(blocks=blocks), devices=choice
        )
        expansion = expand(experiment, f"turn-{done}", list(phones))
        ledger.submit(f"turn-{done}", experiment, expansion.jobs, project=names[done // BLOCKS % projects])
        done += len(expansion.jobs)
    return done


def ledger_bytes(farm: Settings) -> int:
    """Return the size of the file, when everything is in it."""
    with closing(sqlite3.connect(farm.ledger_file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return farm.ledger_file.stat().st_size


class Hosts:
    """Hosts that announce their phones, claim what they are given, and end sessions when they are told."""

    def __init__(self, redis: Redis, ledger: Ledger, phones: Sequence[Device]) -> None:
        self._inventory, self._leases, self._ledger = Inventory(redis), Leases(redis), ledger
        self._phones = list(phones)
        self._running: dict[str, Assignment] = {}
        for phone in self._phones:
            self._inventory.announce_device(phone)

    def announce(self) -> None:
        """Announce, as every two seconds; a phone of which nothing new is known is not announced again here."""
        for host in sorted({phone.facts.host for phone in self._phones}):
            self._inventory.announce_host(
                HostAnnouncement(host=host, worker=host, pid=1, sessions=PHONES_A_HOST, protocol=PROTOCOL)
            )

    def claim(self, placed: Iterable[Assignment]) -> None:
        """Take what was placed."""
        for one in placed:
            self._leases.claim(one.serial, one.token, one.host)
            self._running[one.serial] = one

    def change(self) -> None:
        """A hundred changes."""
        for serial in list(self._running)[: CHANGES // 2]:
            one = self._running.pop(serial)
            self._ledger.end_attempt(one.job_id, one.attempt, Outcome.OK, "")
            self._leases.release(serial, one.token)
        for at in random.sample(range(len(self._phones)), min(CHANGES // 2, len(self._phones))):
            phone = self._phones[at]
            state = phone.state.model_copy(update={"battery_temp_c": random.uniform(20, 30)})
            self._phones[at] = phone.model_copy(update={"state": state})
            self._inventory.announce_device(self._phones[at])


def measured(farm: Settings, phones: int, jobs: int, lanes: Lanes, projects: int = 1) -> Turn:
    """Submit, turn until every phone is taken, then with a hundred changes before each turn, then with none."""
    with Ledger(farm.ledger) as ledger, redis_client.connect(farm) as redis:
        all_phones = devices(phones)
        began = time.process_time()
        submitted = submit(ledger, all_phones, jobs, lanes, projects)
        submit_s = time.process_time() - began
        size = ledger_bytes(farm)
        scheduler, hosts = Scheduler(farm, ledger, redis), Hosts(redis, ledger, all_phones)

        def turn() -> tuple[float, int]:
            hosts.announce()
            before = time.process_time()
            placed = scheduler.tick().placed
            spent = time.process_time() - before
            hosts.claim(placed)
            return spent, len(placed)

        first_s, placed = turn()
        filling = [first_s] if placed else []
        while (found := turn())[1]:
            filling.append(found[0])
        changed = []
        for _ in range(TURNS):
            hosts.change()
            changed.append(turn()[0])
            turn()  # claims are noted
        idle = [turn()[0] for _ in range(5 * TURNS)][TURNS:]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return Turn(
            phones, submitted, lanes, submit_s, size / submitted, statistics.median(filling),
            statistics.median(changed), statistics.median(idle), max(idle), memory, first_s,
        )  # fmt: skip


@contextmanager
def private_redis(folder: Path) -> Iterator[str]:
    """A Redis on a socket in the folder, in a session of its own as every part of a farm; its URL."""
    path, _ = find()
    socket = folder / "redis.sock"
    words = ["--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", "", "--loglevel", "warning"]
    server = subprocess.Popen([path, *words], stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        ready = Redis(unix_socket_path=str(socket))
        give_up_at = time.monotonic() + START_S
        while not socket.exists() or not ready.ping():
            if time.monotonic() > give_up_at:
                raise TimeoutError("redis-server did not start")
            time.sleep(0.05)
        ready.close()
        yield f"redis+socket://{socket}"
    finally:
        server.terminate()
        server.wait()


def one(phones: int, jobs: int, lanes: Lanes, projects: int) -> Turn:
    """Measure in an empty folder."""
    with tempfile.TemporaryDirectory() as folder, private_redis(Path(folder)) as url:
        farm = Settings(
            state=Path(folder), redis_url=url.replace("redis+socket", "unix"), host="lab0", lease_ttl_s=3600
        )
        return measured(farm, phones, jobs, lanes, projects)


def main() -> None:
    """A process a row, so that memory is its own."""
    arguments, rows = parser().parse_args(), []
    for lanes in arguments.lanes:
        for phones in arguments.phones:
            if arguments.inside:
                print(json.dumps(asdict(one(phones, arguments.jobs, lanes, arguments.projects))))
                return
            words = ["--phones", str(phones), "--jobs", str(arguments.jobs), "--lanes", lanes, "--inside"]
            words += ["--projects", str(arguments.projects)]
            command = [sys.executable, "-m", "benchmarks.farm.scheduler_turn", *words]
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            rows.append(Turn(**json.loads(found)))
            print(rows[-1], flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = command(__doc__)
    made.add_argument("--phones", type=int, nargs="+", default=[200])
    made.add_argument("--jobs", type=int, default=10_000)
    made.add_argument("--lanes", choices=["any", "each"], nargs="+", default=["any", "each"])
    made.add_argument("--projects", type=int, default=1, help="the experiments are of so many, in turn")
    made.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return made


if __name__ == "__main__":
    run_command(main)
