"""A year of nights in one ledger: what results of one night and a turn of the scheduler cost beside all the others.

    python -m benchmarks.farm.year_of_nights --nights 4000 --rounds 10 [--folder .] [-o raw.json]

One night of fifty blocks a round is submitted, begun and kept through the ledger. The others are copies of its rows in
every table, under names of their own; what is in their records and figures is cut off after some bytes: nobody here
reads it. The same is measured of a ledger with that night alone.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.command_line import command, run_command, tell
from benchmarks.farm.block_records import BLOCKS_A_ROUND, jobs_of, night, record_of
from benchmarks.farm.scheduler_turn import measured as turns_of
from benchmarks.farm.scheduler_turn import private_redis
from orchestrator.ledger import Ledger
from orchestrator.system.config import Settings

ASKED = "night-0"
TURNS = 5
PHONES, JOBS = 100, 1000
"""The phones and jobs of the scheduler's turn."""
AT_ONCE = 100
"""Nights of a transaction."""
RECORD_BYTES = 100

COPIES = (
    """INSERT INTO experiments (id, sequence, spec, exclusions, submitted_at, served_at)
       SELECT 'night-' || :n, sequence + :n, spec, exclusions, submitted_at + 86400.0 * :n, served_at + 86400.0 * :n
       FROM experiments WHERE id = :asked""",
    """INSERT INTO templates (id, experiment, digest, cell_id, label, body)
       SELECT id + :n * :step, experiment + :n, digest, cell_id, label, body FROM templates WHERE experiment = :own""",
    """INSERT INTO lanes (id, experiment, choice_id, changed)
       SELECT id + :n * :step, experiment + :n, choice_id, changed FROM lanes WHERE experiment = :own""",
    """INSERT INTO jobs (id, experiment, sequence, template_id, lane_id, block, priority, state, outcome, cause,
       attempts, failures, token, not_before, ended_at)
       SELECT {name}, experiment + :n, sequence, template_id + :n * :step, lane_id + :n * :step, block, priority,
       state, outcome, cause, attempts, failures, token + :n * :blocks, not_before, ended_at + 86400.0 * :n
       FROM jobs WHERE experiment = :own""",
    """INSERT INTO attempts (job_id, attempt, token, serial, host, ttl_s, started_at, ended_at, outcome, cause, changed)
       SELECT {name}, attempt, token + :n * :blocks, serial, host, ttl_s, started_at + 86400.0 * :n,
       ended_at + 86400.0 * :n, outcome, cause, changed FROM attempts
       WHERE job_id IN (SELECT id FROM jobs WHERE experiment = :own)""",
    """INSERT INTO records (job_id, attempt, token, experiment_id, cell_id, serial, outcome, cause, source, started_at,
       kept_at, body) SELECT {name}, attempt, token + :n * :blocks, 'night-' || :n, cell_id, serial, outcome, cause,
       source, started_at + 86400.0 * :n, kept_at + 86400.0 * :n, substr(body, 1, :bytes)
       FROM records WHERE experiment_id = :asked""",
    """INSERT INTO figures (job_id, attempt, version, experiment_id, cell_id, serial, source, outcome, started_at,
       kept_at, median_ms, error, body, per_layer) SELECT {name}, attempt, version, 'night-' || :n, cell_id, serial,
       source, outcome, started_at + 86400.0 * :n, kept_at + 86400.0 * :n, median_ms, error,
       substr(body, 1, :bytes), substr(per_layer, 1, :bytes)
       FROM figures WHERE experiment_id = :asked""",
)
"""A night more, number `n`; `step` leaves room for the numbers of templates and lanes."""
NAMES = {"jobs": "printf('%08x', :n) || substr(id, 9)", "others": "printf('%08x', :n) || substr(job_id, 9)"}


@dataclass(frozen=True)
class Found:
    """Medians of five; of turns and of `..._processor_s` seconds of the processor, else of a clock."""

    nights: int
    blocks: int
    file_mb: float
    results_s: float
    """`farm results` of one night."""
    results_processor_s: float
    start_s: float
    """`farm --version`: what of that is Python and its imports."""
    turn_changed_s: float
    turn_idle_s: float
    first_turn_s: float
    """The first turn of a scheduler that starts."""


def measured(folder: Path, nights: int, rounds: int) -> list[Found]:
    """Measure with one night, and with all of them: each in a state folder of its own."""
    blocks = rounds * BLOCKS_A_ROUND
    few, many = (Settings(state=folder / name, host="lab0", lease_ttl_s=3600) for name in ("few", "many"))
    with Ledger(few.ledger) as ledger:
        _keep_one(ledger, rounds)
    many.state.mkdir()
    with closing(sqlite3.connect(few.ledger_file)) as source, closing(sqlite3.connect(many.ledger_file)) as target:
        source.backup(target)
    _copy(many.ledger_file, nights, blocks)
    return [_look(few, 1, blocks), _look(many, nights, blocks * nights)]


def _keep_one(ledger: Ledger, rounds: int) -> None:
    jobs = jobs_of(night(rounds), ASKED)
    ledger.submit(ASKED, night(rounds), jobs)
    for seed, job in enumerate(jobs):
        begun = ledger.begin_attempt(job.job_id, job.candidates[0], "lab", 15.0)
        assert begun is not None
        ledger.keep(record_of(job, begun.attempt, begun.token, seed))


def _copy(file: Path, nights: int, blocks: int) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA cache_size=-400000")
        connection.execute("PRAGMA journal_mode=MEMORY")
        own, most = connection.execute(
            "SELECT e.sequence, (SELECT max(max(id), (SELECT max(id) FROM lanes)) FROM templates) FROM experiments e "
            "WHERE e.id = ?", (ASKED,),
        ).fetchone()  # fmt: skip
        taken = connection.execute("SELECT max(token) FROM attempts").fetchone()[0]
        values = {"own": own, "asked": ASKED, "step": most, "blocks": taken, "bytes": RECORD_BYTES}
        for start in range(1, nights, AT_ONCE):
            connection.execute("BEGIN")
            for number in range(start, min(start + AT_ONCE, nights)):
                for statement in COPIES:
                    name = NAMES["jobs" if "INTO jobs" in statement else "others"]
                    connection.execute(statement.replace("{name}", name), {**values, "n": number})
            connection.execute("COMMIT")
        connection.execute("UPDATE counters SET value = value + ? WHERE name <> 'schema'", (taken * nights,))
        found = connection.execute("SELECT count(*) FROM records").fetchone()[0]
        assert found == nights * blocks, found


def _look(farm: Settings, nights: int, blocks: int) -> Found:
    size = farm.ledger_file.stat().st_size / 1e6
    results_s, results_processor_s = _medians_s(["results", ASKED, "--state", str(farm.state)])
    with tempfile.TemporaryDirectory() as folder, private_redis(Path(folder)) as url:
        own = farm.model_copy(update={"redis_url": url.replace("redis+socket", "unix")})
        turn = turns_of(own, PHONES, JOBS, "any")
    start_s, _ = _medians_s(["--version"])
    return Found(
        nights, blocks, round(size), results_s, results_processor_s, start_s, turn.changed_s, turn.idle_s, turn.first_s
    )


def _medians_s(words: list[str]) -> tuple[float, float]:
    """Return medians of a command of the farm, its modules compiled before: by a clock, and of the processor."""
    spent, used = [], []
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(TURNS):
        start, before = time.perf_counter(), os.times()
        subprocess.run([sys.executable, "-m", "farm.cli", *words], check=True, stdout=subprocess.DEVNULL,
                       env=compiled)  # fmt: skip
        after = os.times()
        spent.append(time.perf_counter() - start)
        used.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return statistics.median(spent), statistics.median(used)


def main() -> None:
    made = command(__doc__)
    made.add_argument("--nights", type=int, default=4000)
    made.add_argument("--rounds", type=int, default=10, help="of 50 blocks each")
    made.add_argument("--folder", type=Path, default=None, help="on the disk that is meant")
    chosen = made.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        found = [asdict(each) for each in measured(Path(folder), chosen.nights, chosen.rounds)]
    tell(found, chosen.output)


if __name__ == "__main__":
    run_command(main)
