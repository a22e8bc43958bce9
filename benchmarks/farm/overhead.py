"""The farm's cost for a job: from its submission to the agent's first step, and from its last to the ledger.

    python -m benchmarks.farm.overhead --phones 8 --jobs 200 --burst 400 [--network lenet] [-o raw.json]

A whole farm of virtual phones. First one no-op job (the sum of two vectors, once) after the other on an idle farm, each
by an experiment of its own; then many of one experiment at once. Then the same way without phones (`claim_to_commit`),
and beside it what others take to hand out work that does nothing (`peers`). Times are of a clock.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.command_line import command, run_command, tell
from benchmarks.farm.claim_to_commit import Committed, committed
from benchmarks.farm.peers import Peer, celery_rate
from benchmarks.farm.running import RunningFarm, running_farm
from benchmarks.farm.timed_worker import now_ns
from orchestrator.coordination.client import connect
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.device import Api, Device, Health
from orchestrator.model.experiment import Conditions, DeviceChoice, Experiment, Matrix, Measure, Sampling, Workload
from orchestrator.model.live.lease import LINE_MOST
from orchestrator.model.record import Outcome, Record
from orchestrator.spec.expansion.expand import expand

NETWORK = "add_256"
"""Inferred by a job that does nothing: 256 numbers and no weights."""
LIMIT_S = 60.0
LOOK_S = 0.001
OPEN = """
SELECT 1 FROM jobs JOIN experiments ON experiments.sequence = jobs.experiment
WHERE experiments.id = ? AND jobs.state != 'done' LIMIT 1
"""
"""Asked of the file itself: counting jobs a thousand times a second takes the better part of a core from the farm."""


@dataclass(frozen=True)
class Spread:
    """The spread of many jobs, in milliseconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, times_ns: Sequence[float]) -> Spread:
        cuts = statistics.quantiles(times_ns, n=100, method="inclusive")
        return cls(round(cuts[49] / 1e6, 2), round(cuts[98] / 1e6, 2))


@dataclass(frozen=True)
class Timed:
    """One job: nanoseconds."""

    before_ns: int
    """The time from its submission to the agent's first step."""
    agent_ns: int
    after_ns: int
    """The time from the agent's last step to the ledger."""
    to_claim_ns: int
    """The part of `before_ns` until a session had its lease."""
    adb_before_ns: int
    adb_after_ns: int
    adb_calls: int

    @property
    def own_ns(self) -> int:
        """The farm's own share."""
        return self.before_ns + self.after_ns - self.adb_before_ns - self.adb_after_ns


@dataclass(frozen=True)
class Alone:
    """Jobs that nothing waits for but themselves."""

    jobs: int
    submit_to_agent_ms: Spread
    submit_to_claim_ms: Spread
    agent_ms: Spread
    agent_to_ledger_ms: Spread
    overhead_ms: Spread
    """Both ways together."""
    adb_ms: Spread
    adb_calls: float
    without_adb_ms: Spread


@dataclass(frozen=True)
class Burst:
    jobs: int
    jobs_per_s: float
    worker_cpu_ms: float
    """The processor's time, a job; the same for the others."""
    scheduler_cpu_ms: float
    phones_cpu_ms: float
    """The same, with adb's server and the agents."""


@dataclass(frozen=True)
class Found:
    machine: str
    load: float
    """Processes that wanted a core, on average of the minute before: others may work on the machine."""
    phones: int
    network: str
    """The network that a job infers."""
    alone: Alone
    burst: Burst
    without_phones: tuple[Committed, ...]
    """One attempt a lease, and lines."""
    peers: tuple[Peer, ...]


def no_op(name: str, *, network: str = NETWORK, blocks: int = 1, count: str = "any") -> Experiment:
    """A small plan, inferred once on one thread."""
    return Experiment.model_validate(
        {
            "name": name,
            "workload": Workload(network=network),
            "matrix": Matrix.model_validate({"backend": [Api.CPU], "threads": [1]}),
            "devices": DeviceChoice.model_validate({"where": 'kind == "phone"', "count": count}),
            "sampling": Sampling.model_validate({"blocks": blocks, "warmup": 0, "samples": 1, "deadline": "60 s"}),
            "conditions": Conditions.model_validate({"battery_temp_max": "60 C", "thermal_status_max": 6}),
            "measure": Measure.model_validate({"quantities": ["latency"]}),
        }
    )


class Desk:
    """The desk where jobs are handed in, and their records waited for."""

    def __init__(
        self, farm: RunningFarm, ledger: Ledger, inventory: Inventory, network: str = NETWORK, most: int | None = None
    ) -> None:
        self._farm, self._ledger, self._inventory, self._network = farm, ledger, inventory, network
        self._phones = [each for each in inventory.devices() if each.facts.kind == "phone"][:most]
        self._file, self._noted = sqlite3.connect(farm.settings.ledger_file), 0

    def submit(self, experiment_id: str, experiment: Experiment, phones: Sequence[Device] | None = None) -> int:
        """The time at which it was accepted."""
        self._ledger.submit(experiment_id, experiment, expand(experiment, experiment_id, phones or self._phones).jobs)
        accepted = now_ns()
        self._inventory.tell_scheduler()
        return accepted

    def await_end(self, experiment_id: str, limit_s: float = LIMIT_S) -> int:
        """The time at which the ledger had all records. Raises TimeoutError."""
        end = time.monotonic() + limit_s
        while self._file.execute(OPEN, (experiment_id,)).fetchone():
            if time.monotonic() > end:
                raise TimeoutError(f"{experiment_id}: {self._ledger.counts(experiment_id)} after {limit_s:g} s")
            time.sleep(LOOK_S)
        return now_ns()

    def record(self, experiment_id: str) -> Record:
        """Return the record of an experiment with one job. Raises RuntimeError where that did not go well."""
        (record,) = self._ledger.records(experiment_id)
        if record.outcome is not Outcome.OK:
            raise RuntimeError(f"{record.device.serial}: {record.outcome}: {record.reasons}")
        return record

    def alone(self, jobs: int, prefix: str = "alone") -> list[Timed]:
        """One after the other, phone after phone."""
        found = []
        for number in range(jobs):
            phone, name = self._phones[number % len(self._phones)], f"{prefix}-{number}"
            self._until_ready(phone.serial)
            accepted = self.submit(name, no_op("alone", network=self._network), [phone])
            over = self.await_end(name)
            found.append(self._timed(self.record(name), accepted, over))
        return found

    def _until_ready(self, serial: str) -> None:
        while not any(each.serial == serial and _is_free(each) for each in self._inventory.devices()):
            time.sleep(0.05)

    def _timed(self, record: Record, accepted: int, over: int) -> Timed:
        started = min(each.start_ns for each in record.setup)
        ended = max(each.t_ns for each in (*record.outputs, *record.setup, *record.samples))
        notes, self._noted = self._farm.adb(self._noted)
        notes = [each for each in notes if each["serial"] == record.device.serial or each["kind"] == "claim"]
        notes = [each for each in notes if accepted <= int(str(each["at"])) <= over]
        claims = [_at(each) + _ns(each) for each in notes if each["kind"] == "claim"]
        asked = [each for each in notes if each["kind"] != "claim"]
        return Timed(
            before_ns=started - accepted,
            agent_ns=ended - started,
            after_ns=over - ended,
            to_claim_ns=min(claims, default=accepted) - accepted,  # claimed before we heard that it was accepted
            adb_before_ns=sum(max(0, min(_at(each) + _ns(each), started) - _at(each)) for each in asked),
            adb_after_ns=sum(max(0, _at(each) + _ns(each) - max(ended, _at(each))) for each in asked),
            adb_calls=len(asked),
        )


def _at(note: dict[str, object]) -> int:
    return int(str(note["at"]))


def _ns(note: dict[str, object]) -> int:
    return int(str(note["ns"]))


def _is_free(device: Device) -> bool:
    return device.state.health is Health.READY and (device.state.ready_at or 0.0) <= time.time()


def spread(found: Sequence[Timed]) -> Alone:
    return Alone(
        jobs=len(found),
        submit_to_agent_ms=Spread.of([each.before_ns for each in found]),
        submit_to_claim_ms=Spread.of([each.to_claim_ns for each in found]),
        agent_ms=Spread.of([each.agent_ns for each in found]),
        agent_to_ledger_ms=Spread.of([each.after_ns for each in found]),
        overhead_ms=Spread.of([each.before_ns + each.after_ns for each in found]),
        adb_ms=Spread.of([each.adb_before_ns + each.adb_after_ns for each in found]),
        adb_calls=statistics.mean(each.adb_calls for each in found),
        without_adb_ms=Spread.of([each.own_ns for each in found]),
    )


def _burst(farm: RunningFarm, desk: Desk, experiment: Experiment) -> Burst:
    jobs = experiment.sampling.blocks
    before = farm.processor_s()
    began = time.monotonic()
    desk.submit("burst", experiment)
    desk.await_end("burst", LIMIT_S + jobs)
    took_s = time.monotonic() - began
    after = farm.processor_s()
    spent = {part: round(1e3 * (after[part] - before[part]) / jobs, 2) for part in after}
    return Burst(
        jobs, round(jobs / took_s, 2), spent["worker"], spent["scheduler"], round(spent["phones"] + spent["adb"], 2)
    )


def _with_phones(state: Path, chosen: argparse.Namespace) -> tuple[Alone, Burst, Record]:
    with (
        running_farm(state, chosen.phones) as farm,
        Ledger(farm.settings.ledger) as ledger,
        connect(farm.settings) as redis,
    ):
        desk = Desk(farm, ledger, Inventory(redis), chosen.network)
        desk.submit("warm", no_op("warm", network=chosen.network, count="all"))
        desk.await_end("warm")
        alone = spread(desk.alone(chosen.jobs))
        print(alone, flush=True)
        burst = _burst(farm, desk, no_op("burst", network=chosen.network, blocks=chosen.burst))
        print(burst, flush=True)
        return alone, burst, desk.record("alone-0")


def measured(chosen: argparse.Namespace) -> Found:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        alone, burst, like = _with_phones(Path(folder) / "state", chosen)
        without_phones = []
        for in_line in (1, LINE_MOST):
            without_phones.append(committed(Path(folder) / f"without-{in_line}", like, chosen.commits, in_line))
            print(without_phones[-1], flush=True)
        peers = (celery_rate(Path(folder), chosen.calls),)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    return Found(machine, round(load, 1), chosen.phones, chosen.network, alone, burst, tuple(without_phones), peers)


def main() -> None:
    made = command(__doc__)
    made.add_argument("--phones", type=int, default=8)
    made.add_argument("--network", default=NETWORK, help="what a job infers")
    made.add_argument("--jobs", type=int, default=200, help="one after the other")
    made.add_argument("--burst", type=int, default=400, help="at once")
    made.add_argument("--commits", type=int, default=2000, help="without phones")
    made.add_argument("--calls", type=int, default=2000, help="of each of the others")
    chosen = made.parse_args()
    found = measured(chosen)
    tell(asdict(found), chosen.output)


if __name__ == "__main__":
    run_command(main)
