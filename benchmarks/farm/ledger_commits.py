"""The cost of SQLite's having each commit on the disk before it returns: records kept a second, with and without.

    python -m benchmarks.farm.ledger_commits --records 500 --folder .

Both ways take turns in the same folder; each turn has a ledger of its own and keeps one record a transaction.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.command_line import run_command
from orchestrator.ledger import KeepResult, Ledger, database
from orchestrator.model.device import Api, DeviceFacts, Source
from orchestrator.model.experiment import Conditions, Experiment, Measure, Sampling, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.record import Outcome, Record

WAYS = ("NORMAL", "FULL")
"""PRAGMA synchronous: flushed at checkpoints; at every commit."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(), help="on the disk that is meant")
    chosen = parser.parse_args()
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(chosen.turns):
        for way in WAYS if turn % 2 == 0 else WAYS[::-1]:
            with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
                rates[way].append(_rate(Path(folder), way, chosen.records))
    for way, found in rates.items():
        print(f"synchronous={way:6} {statistics.median(found):7.0f} records/s ({min(found):.0f} to {max(found):.0f})")


def _rate(folder: Path, way: str, count: int) -> float:
    database.SYNCHRONOUS = way
    jobs = [_job(block) for block in range(count)]
    experiment = Experiment(name="commits", workload=jobs[0].cell.workload)
    with Ledger(f"sqlite:///{folder / 'ledger.sqlite'}") as ledger:
        ledger.submit("commits-1", experiment, jobs)
        begun = [ledger.begin_attempt(job.job_id, "A", "lab", 15.0) for job in jobs]
        records = [_record(each.job, each.token) for each in begun if each is not None]
        start = time.perf_counter()
        kept = [ledger.keep(record) for record in records]
        took_s = time.perf_counter() - start
    assert kept == [KeepResult.NEW] * count
    return count / took_s


def _job(block: int) -> Job:
    cell = Cell(workload=Workload(network="lenet"), backend=Api.CPU)
    return Job(
        experiment_id="commits-1", cell=cell, block=block, candidates=("A",),
        sampling=Sampling(), conditions=Conditions(), measure=Measure(),
    )  # fmt: skip


def _record(job: Job, token: int) -> Record:
    facts = DeviceFacts(serial="A", host="lab", kind="phone", source=Source.VIRTUAL)
    return Record(
        experiment_id=job.experiment_id, job_id=job.job_id, cell_id=job.cell.cell_id, block=job.block, attempt=1,
        token=token, worker="w", device=facts, source=facts.source, outcome=Outcome.OK, started_at=1.0, ended_at=2.0,
    )  # fmt: skip


if __name__ == "__main__":
    run_command(main)
