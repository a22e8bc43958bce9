"""The memory of the parts of a farm with many phones, and whether anything grows while it works.

    python -m benchmarks.farm.footprint --phones 400 --minutes 5 [-o raw.json]

A whole farm of virtual phones: at rest, after a no-op job on every phone, then under jobs without end; with each sample
its metrics are scraped and its first page is opened. Memory is the proportional share (PSS). Growth is the slope of a
line through the samples of the second half, with its standard error: each sample resembles the one before, which is
reckoned with (`orchestrator/analysis/autoregression.py`).
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from math import inf, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
from redis import Redis

from benchmarks.command_line import command, run_command
from benchmarks.farm.overhead import Desk, no_op
from benchmarks.farm.running import RunningFarm, running_farm
from orchestrator.analysis.autoregression import resemblance, with_error
from orchestrator.coordination.client import connect
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger

NETWORK = "lenet"
"""The network that a job infers."""
PERIOD_S = 10.0
AHEAD = 100
"""Jobs that wait at least, so that no phone is idle for want of them."""
JOBS_S = 600.0
ANSWER_S = 60.0
"""The time for an answer of the exporter and of the pages."""


@dataclass(frozen=True)
class Part:
    """One part's processes together."""

    pss_mb: float
    threads: int
    descriptors: int


@dataclass(frozen=True)
class Sample:
    at_s: float
    jobs: int
    """The jobs whose records the ledger has."""
    parts: dict[str, Part]
    redis_keys: int
    lasting_keys: int
    """The keys that do not end by themselves."""
    files: int
    """The files in the state folder, without those of the phones."""


class Slope(NamedTuple):
    size: float
    error: float
    """Standard error."""


class Growth(NamedTuple):
    an_hour: Slope
    a_thousand_jobs: Slope


@dataclass(frozen=True)
class Found:
    phones: int
    ready_s: float
    idle: Sample
    worked: Sample
    """The sample after a job on every phone."""
    soak: tuple[Sample, ...]
    growth: dict[str, Growth]
    """The growth of each figure, in the second half of the soak."""


def sample(farm: RunningFarm, ledger: Ledger, redis: Redis, began: float) -> Sample:
    done = sum(count for word, count in ledger.counts().items() if word in ("ok", "invalid", "failed", "lost"))
    keys, lasting = _keys(redis)
    for port, path in ((farm.exporter_port, "/metrics"), (farm.pages_port, "/")):
        _look(port, path)
    parts = {name: _part(found) for name, found in {**farm.parts(), "keepers": farm.keepers()}.items()}
    return Sample(round(time.monotonic() - began, 1), done, parts, keys, lasting, _files(farm.settings.state))


def _look(port: int, path: str) -> None:
    with closing(HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)) as connection:
        connection.request("GET", path)
        connection.getresponse().read()


def _part(processes: Sequence[psutil.Process]) -> Part:
    pss = threads = descriptors = 0
    for process in processes:
        try:
            pss += process.memory_full_info().pss
            threads += process.num_threads()
            descriptors += process.num_fds()
        except psutil.Error:  # an agent that has just ended
            continue
    return Part(round(pss / 1e6, 2), threads, descriptors)


def _keys(redis: Redis) -> tuple[int, int]:
    every = list(redis.scan_iter(count=1000))
    with redis.pipeline(transaction=False) as pipe:
        for key in every:
            pipe.ttl(key)
        ends = pipe.execute()
    return len(every), sum(ttl < 0 for ttl in ends)


def _files(state: Path) -> int:
    return sum(len(files) for folder, _, files in os.walk(state) if "virtual" not in Path(folder).parts)


def growth(samples: Sequence[Sample]) -> dict[str, Growth]:
    """Return the growth by figure."""
    late = samples[len(samples) // 2 :]
    figures: dict[str, list[float]] = {"redis_keys": [], "lasting_keys": [], "files": []}
    for each in late:
        for name in ("redis_keys", "lasting_keys", "files"):
            figures[name].append(getattr(each, name))
        for part, found in each.parts.items():
            for name, value in asdict(found).items():
                figures.setdefault(f"{part} {name}", []).append(value)
    hours, jobs = [each.at_s / 3600 for each in late], [each.jobs / 1000 for each in late]
    return {name: Growth(_slope(hours, values), _slope(jobs, values)) for name, values in figures.items()}


def _slope(by: Sequence[float], values: Sequence[float]) -> Slope:
    """Return a slope; it is not a number where too few samples tell it."""
    columns, found = np.column_stack([np.ones(len(by)), by]), np.array(values, dtype=float)
    rest = found - columns @ np.linalg.lstsq(columns, found)[0]
    size, error = with_error(found, columns, resemblance([rest]))
    return Slope(round(size, 3), round(error, 3)) if error < inf else Slope(nan, nan)


def measured(state: Path, phones: int, minutes: float) -> Found:
    began = time.monotonic()
    with running_farm(state, phones) as farm, Ledger(farm.settings.ledger) as ledger, connect(farm.settings) as redis:
        ready_s, desk = time.monotonic() - began, Desk(farm, ledger, Inventory(redis))
        idle = sample(farm, ledger, redis, began)
        print(idle, flush=True)
        desk.submit("first", no_op("first", network=NETWORK, count="all"))
        desk.await_end("first", JOBS_S)
        worked = sample(farm, ledger, redis, began)
        print(worked, flush=True)
        soak = _soak(farm, ledger, redis, desk, minutes)
    return Found(phones, round(ready_s, 1), idle, worked, tuple(soak), growth(soak))


def _soak(farm: RunningFarm, ledger: Ledger, redis: Redis, desk: Desk, minutes: float) -> list[Sample]:
    began, found, number = time.monotonic(), [], 0
    while (now := time.monotonic() - began) < 60 * minutes:
        if ledger.counts().get("waiting", 0) < AHEAD:
            desk.submit(f"soak-{number}", no_op("soak", network=NETWORK, blocks=2 * AHEAD))
            number += 1
        if now >= PERIOD_S * len(found):
            found.append(sample(farm, ledger, redis, began))
            print(found[-1], flush=True)
        time.sleep(0.5)
    return found


def main() -> None:
    made = command(__doc__)
    made.add_argument("--phones", type=int, default=400)
    made.add_argument("--minutes", type=float, default=5.0, help="of work without end")
    chosen = made.parse_args()
    with tempfile.TemporaryDirectory(prefix="footprint-") as folder:
        found = asdict(measured(Path(folder) / "state", chosen.phones, chosen.minutes))
    print(json.dumps({name: found[name] for name in ("phones", "ready_s", "idle", "worked", "growth")}, indent=1))
    if chosen.output:
        chosen.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    run_command(main)
