"""The cost of `farm compare` of two experiments with many cells, the whole command, by what it prints and writes.

    python -m benchmarks.farm.comparing --phones 1000 --blocks 5 [--folder .] [-o raw.json]

A phone has ten cells: five networks on two APIs. Both experiments are submitted to a ledger; the row of figures of each
block is made of a made-up record of its cell, with figures of its own, and stored as intake stores it. There is no
record beside it: comparisons read rows. One phone in twenty is 5 % slower in the second experiment.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.command_line import command, run_command, tell
from benchmarks.farm.block_records import BLOCKS_A_ROUND, PHONES, jobs_of, night, record_of
from farm.cli.nights.compare import DIFFERENT
from orchestrator.figures import BlockFigures, figures_of
from orchestrator.ledger import Ledger
from orchestrator.ledger.database import Database
from orchestrator.ledger.figures.intake import put, row_of
from orchestrator.model.job import Job
from orchestrator.system.config import Settings

SIDES = {"before": 1.0, "after": 1.05}
SLOWER_OF = 20
AT_ONCE = 2000
METRICS = 6
"""The metrics of a cell: latency, set-up, three of memory, energy."""
OUTPUTS: dict[str, list[str]] = {
    "forty rows": [],
    "every row": ["--all"],
    "json": ["--json"],
    "html": ["--html", "compared.html"],
    "markdown": ["--markdown", "compared.md"],
    "junit": ["--junit", "compared.xml"],
}


@dataclass(frozen=True)
class Found:
    """Medians in seconds, by a clock and of the processor."""

    output: str
    wall_s: float
    processor_s: float
    written_mb: float


def fill(farm: Settings, phones: int, blocks: int) -> None:
    """Two experiments, each with so many blocks of each cell on each phone."""
    with Ledger(farm.ledger) as ledger:
        for number, (name, slower) in enumerate(SIDES.items()):
            experiment = night(blocks).model_copy(update={"name": name})
            jobs = jobs_of(experiment, name, phones)
            ledger.submit(name, experiment, jobs)
            _keep(farm, jobs, number, slower)


def _keep(farm: Settings, jobs: tuple[Job, ...], number: int, slower: float) -> None:
    drawn, made = random.Random(number), dict[str, BlockFigures]()
    database = Database(farm.ledger)
    for start in range(0, len(jobs), AT_ONCE):
        rows = []
        for place, job in enumerate(jobs[start : start + AT_ONCE], start=start):
            serial = job.candidates[0]
            if job.cell.cell_id not in made:
                made[job.cell.cell_id] = figures_of(record_of(job, 1, 1, number), job.cell)
            factor = slower if int(serial[4:]) % SLOWER_OF == 0 else 1.0
            at = 1.79e9 + 86400 * number + 45.0 * place / len(jobs) * 100
            rows.append(row_of(_block(made[job.cell.cell_id], job, place + 1, at, factor, drawn)))
        with database.write() as connection:
            put(connection, rows)
    database.close()


def _block(known: BlockFigures, job: Job, token: int, at: float, factor: float, drawn: random.Random) -> BlockFigures:
    """Return a block with figures of its own, 1 % apart."""

    def near(value: float) -> float:
        return value * drawn.gauss(1, 0.01)

    assert known.times and known.energy and known.memory and known.energy.per_inference_j
    energy = known.energy.per_inference_j
    return known.model_copy(
        update={
            "job_id": job.job_id, "block": job.block, "token": token, "serial": job.candidates[0], "started_at": at,
            "ended_at": at + 40,
            "times": known.times.model_copy(update={"median_ms": near(factor * known.times.median_ms)}),
            "setup_ns": {step: round(near(spent)) for step, spent in known.setup_ns.items()},
            "memory": known.memory.model_copy(update={"vm_hwm_bytes": round(near(known.memory.vm_hwm_bytes))}),
            "energy": known.energy.model_copy(
                update={"per_inference_j": energy.model_copy(update={"value": near(abs(energy.value))})}
            ),
        }
    )  # fmt: skip


def measured(farm: Settings, folder: Path, output: str, turns: int) -> Found:
    """One way to show a comparison."""
    words = [str(folder / word) if word.startswith("compared.") else word for word in OUTPUTS[output]]
    command = [sys.executable, "-m", "farm.cli", "compare", *SIDES, "--state", str(farm.state), *words]
    spent, used, told = [], [], b""
    for _ in range(turns):
        start, before = time.perf_counter(), os.times()
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE)
        if done.returncode != DIFFERENT:  # one phone in twenty is slower
            raise SystemExit(f"exit status {done.returncode} of: {' '.join(command)}")
        told = done.stdout
        after = os.times()
        spent.append(time.perf_counter() - start)
        used.append(after.children_user + after.children_system - before.children_user - before.children_system)
    written = len(told) + sum(file.stat().st_size for file in folder.glob("compared.*"))
    for file in folder.glob("compared.*"):
        file.unlink()
    return Found(output, statistics.median(spent), statistics.median(used), round(written / 1e6, 2))


def main() -> None:
    made = command(__doc__)
    made.add_argument("--phones", type=int, default=1000, help="with ten cells each")
    made.add_argument("--blocks", type=int, default=5, help="of each cell on each side")
    made.add_argument("--turns", type=int, default=3)
    made.add_argument("--folder", type=Path, default=None, help="on the disk that is meant")
    chosen = made.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        farm = Settings(state=Path(folder) / "state", host="lab0")
        farm.state.mkdir()
        fill(farm, chosen.phones, chosen.blocks)
        found = [measured(farm, Path(folder), output, chosen.turns) for output in OUTPUTS]
    cells = chosen.phones * BLOCKS_A_ROUND // PHONES
    told = {
        "cells": cells, "rows": cells * METRICS, "blocks": 2 * cells * chosen.blocks, "load": os.getloadavg()[0],
    }  # fmt: skip
    tell({**told, "outputs": [asdict(each) for each in found]}, chosen.output)


if __name__ == "__main__":
    run_command(main)
