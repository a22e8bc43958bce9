"""The savings of rows of figures when results are asked for, and their cost at intake and on the disk.

    python -m benchmarks.farm.ledger_figures --experiments 20 --rounds 20 [-o raw.json]

A SQLite ledger of so many nights, each of them fifty blocks a round. The records of one night, in the middle, are
kept through the ledger; its results are made once of the rows and once, as before there were any, of the records. The
others are only there: their jobs are submitted, their records and rows are copies of bodies that nobody reads.
`--filler-bytes` makes their records smaller than real ones, where the disk has no room.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, insert, select, text

from benchmarks.command_line import run_command
from benchmarks.farm.block_records import BLOCKS_A_ROUND, jobs_of, night, record_of
from farm.cli.farm_access import find_measured
from farm.cli.results.results import gather
from orchestrator.analysis.figures import BlockFigures, figures_of
from orchestrator.config import Settings
from orchestrator.ledger import Ledger, figures
from orchestrator.ledger.tables import FIGURES, RECORDS
from orchestrator.model.job import Job
from orchestrator.report import console

AT_ONCE = 2000
TURNS = 5
INTAKE_RECORDS = 100


@dataclass(frozen=True)
class Found:
    """Times are medians of a few turns: of intake and results those of the processor, the others those of a clock."""

    experiments: int
    blocks: int
    """The blocks in the ledger."""
    asked_blocks: int
    """The blocks of the night that was asked for."""
    file_mb: float
    record_bytes: float
    row_bytes: float
    layers_bytes: float
    intake_without_ms: float
    intake_with_ms: float
    results_of_records_s: float
    results_of_rows_s: float
    command_s: float
    """`farm results ID`."""
    start_s: float
    """`farm --version`: what of that is Python and its imports."""
    rounds_idle_ms: float
    """The time to learn that no further round is to be decided: what a turn of the scheduler pays."""


def measured(state: Path, experiments: int, rounds: int, filler_bytes: int | None) -> Found:
    settings = Settings(state=state)
    asked = f"night-{experiments // 2}"
    with Ledger(settings.ledger) as ledger:
        without_ms, with_ms = _intake(ledger)
        for number in range(experiments):
            experiment_id = f"night-{number}"
            jobs = jobs_of(night(rounds), experiment_id)
            ledger.submit(experiment_id, night(rounds), jobs)
            if experiment_id == asked:
                _keep(ledger, jobs)
        with _connected(settings) as connection:
            _fill(connection, asked, experiments, filler_bytes)
            sizes = [
                _median_bytes(connection, what, asked) for what in ("records.body", "figures.body", "figures.per_layer")
            ]
            (blocks,) = connection.execute(text("SELECT count(*) FROM records")).one()
        return Found(
            experiments=experiments,
            blocks=blocks,
            asked_blocks=rounds * BLOCKS_A_ROUND,
            file_mb=sum(path.stat().st_size for path in state.glob("ledger.sqlite*")) / 1e6,
            record_bytes=sizes[0],
            row_bytes=sizes[1],
            layers_bytes=sizes[2],
            intake_without_ms=without_ms,
            intake_with_ms=with_ms,
            results_of_records_s=_median_s(
                lambda: _results(settings, ledger, asked, _of_records), 1, time.process_time
            ),
            results_of_rows_s=_median_s(
                lambda: _results(settings, ledger, asked, Ledger.figures), TURNS, time.process_time
            ),
            command_s=_median_s(lambda: _command("results", asked, "--state", str(state)), TURNS),
            start_s=_median_s(lambda: _command("--version"), TURNS),
            rounds_idle_ms=1000 * _median_s(ledger.undecided, TURNS),
        )


def _intake(ledger: Ledger) -> tuple[float, float]:
    """Milliseconds of a record without and with its row, in turns."""
    made, put = figures.columns, figures.put
    spent: dict[bool, list[float]] = {False: [], True: []}
    jobs = jobs_of(night(2 * TURNS * INTAKE_RECORDS // BLOCKS_A_ROUND), "intake")
    ledger.submit("intake", night(2 * TURNS * INTAKE_RECORDS // BLOCKS_A_ROUND), jobs)
    for turn in range(2 * TURNS):
        with_rows = turn % 2 == 1
        figures.columns, figures.put = (made, put) if with_rows else (lambda *_: {}, lambda *_: None)
        spent[with_rows].append(_keep(ledger, jobs[turn * INTAKE_RECORDS : (turn + 1) * INTAKE_RECORDS]))
    figures.columns, figures.put = made, put
    return statistics.median(spent[False]), statistics.median(spent[True])


def _keep(ledger: Ledger, jobs: Sequence[Job]) -> float:
    """Keep a record of each job; milliseconds a record."""
    took_s = 0.0
    for seed, job in enumerate(jobs):
        begun = ledger.begin_attempt(job.job_id, job.candidates[0], "lab", 15.0)
        assert begun is not None
        record = record_of(job, begun.attempt, begun.token, seed)
        start = time.process_time()
        ledger.keep(record)
        took_s += time.process_time() - start
    return 1000 * took_s / len(jobs)


@contextmanager
def _connected(settings: Settings) -> Iterator[Connection]:
    engine = create_engine(settings.ledger)
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        yield connection
    engine.dispose()


def _fill(connection: Connection, asked: str, experiments: int, filler_bytes: int | None) -> None:
    """Records and rows of the other nights: those of the night that is asked for, under other names."""
    for table in (RECORDS, FIGURES):
        rows = [dict(row._mapping) for row in connection.execute(select(table).where(table.c.experiment_id == asked))]
        if table is RECORDS and filler_bytes is not None:
            rows = [{**row, "body": row["body"][:filler_bytes]} for row in rows]
        for number in (number for number in range(experiments) if f"night-{number}" != asked):
            own = [
                {**row, "job_id": f"{number:x}-{row['job_id'][:11]}", "experiment_id": f"night-{number}"}
                for row in rows
            ]
            for start in range(0, len(own), AT_ONCE):
                connection.execute(insert(table), own[start : start + AT_ONCE])
    connection.execute(text("UPDATE jobs SET state = 'done', outcome = 'ok'"))


def _median_bytes(connection: Connection, what: str, asked: str) -> float:
    table, column = what.split(".")
    query = f"SELECT length({column}) FROM {table} WHERE experiment_id = :id"  # noqa: S608  (names of this file)
    return statistics.median(connection.scalars(text(query), {"id": asked}))


def _of_records(ledger: Ledger, experiment_id: str, *_: Any) -> list[BlockFigures]:
    """Return figures as if there were no rows."""
    cells = {row.job.cell.cell_id: row.job.cell for row in ledger.jobs(experiment_id)}
    return [figures_of(record, cells[record.cell_id]) for record in ledger.records(experiment_id)]


def _results(settings: Settings, ledger: Ledger, asked: str, blocks: Callable[..., list[BlockFigures]]) -> None:
    """Do what `farm results` does, with the blocks from there."""

    class Asked(Ledger):
        figures = blocks  # type: ignore[assignment]

    ledger.__class__ = Asked
    content = gather(settings, ledger, find_measured(ledger, asked), layers=False)
    ledger.__class__ = Ledger
    assert len(content.blocks) == sum(summary.blocks for summary in content.summaries) > 0
    console.render(content)


def _command(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "farm.cli", *words], check=True, stdout=subprocess.DEVNULL)


def _median_s(act: Callable[[], object], turns: int, clock: Callable[[], float] = time.perf_counter) -> float:
    spent = []
    for _ in range(turns):
        start = clock()
        act()
        spent.append(clock() - start)
    return statistics.median(spent)


def main() -> int:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--experiments", type=int, default=20)
    made.add_argument("--rounds", type=int, default=20, help="of 50 blocks each")
    made.add_argument("--filler-bytes", type=int, default=None)
    made.add_argument("--folder", type=Path, default=None, help="on the disk that is meant")
    made.add_argument("-o", "--output", type=Path, default=None)
    chosen = made.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        found = measured(Path(folder), chosen.experiments, chosen.rounds, chosen.filler_bytes)
    print(json.dumps(asdict(found), indent=1))
    if chosen.output:
        chosen.output.write_text(json.dumps(asdict(found), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    run_command(main)
