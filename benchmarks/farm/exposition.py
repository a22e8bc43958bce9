"""The cost of a scrape of the exporter with many phones, and how many series it has.

    python -m benchmarks.farm.exposition --phones 1000 [-o raw.json]

A Redis and a SQLite ledger of its own; phones with battery, clocks and sensors, half of them leased and at work, and a
result with energy of each; the exporter in a process of its own, asked as a Prometheus asks (OpenMetrics before text,
compressed). Each scrape is a fresh one: the exporter keeps an
answer for two seconds, in which another Prometheus would get it for nothing. Bars are of a clock; the exporter's
processor time tells how far others on the machine lengthened it.
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from redis import Redis

from benchmarks.command_line import command, run_command
from benchmarks.farm.scheduler_turn import private_redis
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import JobRow, Ledger
from orchestrator.metrics.collector import CACHE_S
from orchestrator.model.device import Api, Device, Precision
from orchestrator.model.experiment import Experiment, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.live.announcement import HostAnnouncement
from tests.integration.metrics.content import PHONES, Content, announce, device, finish, state_settings
from tests.integration.metrics.servers import exporter, scraped

SCRAPES = 15
LEASE_S = 3600.0
PHONES_A_HOST = 400


@dataclass(frozen=True)
class Found:
    """Seconds of scrapes after the first one, which reads all results."""

    phones: int
    series: int
    bytes: int
    first_s: float
    median_s: float
    worst_s: float
    processor_s: float
    """The processor's time of the exporter, a scrape."""
    parts_s: dict[str, float]
    """The part of it that is reading Redis and the ledger; the rest is writing the text."""
    families: dict[str, int]
    """Series of each."""


def phones(count: int) -> list[Device]:
    """Return phones with all that a phone may tell."""
    kinds = [device(serial, 0) for serial in PHONES]
    return [
        each.model_copy(
            update={
                "facts": each.facts.model_copy(update={"serial": f"R58M{n:08d}", "host": f"lab{n // PHONES_A_HOST}"})
            }
        )
        for n in range(count)
        for each in (kinds[n % len(kinds)],)
    ]


def fill(redis: Redis, ledger: Ledger, devices: Sequence[Device]) -> Content:
    """Two jobs a phone: one is done, and of half of the phones the other one runs."""
    content = Content(list(devices))
    jobs = _submitted(ledger, content.devices)
    by_serial = {row.job.candidates[0]: row.job for row in jobs if row.job.block == 0}
    rng, leases = random.Random(1), Leases(redis)
    for each in devices:
        finish(ledger, by_serial[each.serial], Content([each]), rng)
    second = [row for row in jobs if row.job.block == 1]
    for row in second[: len(second) // 2]:
        begun = ledger.begin_attempt(row.job_id, row.job.candidates[0], "lab0", LEASE_S)
        if begun is not None and leases.acquire(begun):
            leases.claim(begun.serial, begun.token, "lab0-1")
            content.leased.append(begun)
    return content


def _submitted(ledger: Ledger, devices: Sequence[Device]) -> list[JobRow]:
    experiment = Experiment(name="exposition", workload=Workload(network="lenet"))
    cell = Cell(workload=experiment.workload, backend=Api.OPENCL, precision=Precision.FP32)
    jobs = [
        Job(
            experiment_id="exposition-1", cell=cell, block=block, candidates=(each.serial,),
            sampling=experiment.sampling, conditions=experiment.conditions, measure=experiment.measure,
        )
        for each in devices for block in range(2)
    ]  # fmt: skip
    ledger.submit("exposition-1", experiment, jobs)
    return ledger.jobs("exposition-1")


def measured(count: int) -> Found:
    """Measure in an empty folder."""
    with (
        tempfile.TemporaryDirectory() as folder,
        private_redis(Path(folder)) as socket,
        Ledger(f"sqlite:///{Path(folder) / 'ledger.sqlite'}") as ledger,
    ):
        url = socket.replace("redis+socket", "unix")
        with closing(Redis.from_url(url, decode_responses=True)) as redis:
            content = fill(redis, ledger, phones(count))
            hosts = {each.facts.host for each in content.devices}
            with exporter(state_settings(Path(folder), url)) as address:
                (process,) = psutil.Process().children()[-1:]
                took, spent, text = [], [], ""
                for _ in range(SCRAPES + 1):
                    announce(redis, content.devices, content.leased)
                    for host in hosts:
                        Inventory(redis).announce_host(HostAnnouncement(host=host, worker=host, pid=1))
                    time.sleep(CACHE_S)
                    before, began = _processor_s(process), time.monotonic()
                    text = scraped(address)
                    took.append(time.monotonic() - began)
                    spent.append(_processor_s(process) - before)
    families = Counter(_names(text))
    parts = {line.split('"')[1]: float(line.split()[-1]) for line in text.splitlines() if line.startswith(PARTS)}
    rest = took[1:]
    return Found(
        count, families.total(), len(text), took[0], statistics.median(rest), max(rest),
        statistics.median(spent[1:]), parts, dict(families.most_common()),
    )  # fmt: skip


PARTS = "farm_scrape_duration_seconds{"


def _names(text: str) -> Iterator[str]:
    return (line.partition("{")[0].partition(" ")[0] for line in text.splitlines() if not line.startswith("#"))


def _processor_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    made = command(__doc__)
    made.add_argument("--phones", type=int, default=1000)
    arguments = made.parse_args()
    found = measured(arguments.phones)
    print(found, flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps(asdict(found), indent=1) + "\n")


if __name__ == "__main__":
    run_command(main)
