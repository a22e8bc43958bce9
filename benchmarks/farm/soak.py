"""Whether healthy phones lose a block: thousands of blocks that do next to nothing, on virtual phones without faults.

    python -m benchmarks.farm.soak --blocks 20000 --phones 20

Starts a farm of its own in an empty folder, runs LeNet on the CPU, one sample a block, and prints how the attempts
ended. Exit status 0 where there were as many blocks as asked for and every attempt was ok. Everything that it started
ends with it; the folder stays where an attempt was not ok, for its logs and its ledger.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select

from benchmarks.command_line import FAILED, run_command
from farm import endpoints
from orchestrator.coordination.client import connect
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.ledger.database import Database
from orchestrator.ledger.tables import ATTEMPTS, JOBS
from orchestrator.model.device import Health, Source

START_S = 300.0
LOOK_S = 5.0
MOST_BLOCKS_A_PHONE = 1000
"""Of an experiment."""
SHOWN = 10
"""Attempts that were not ok whose reasons are printed."""

SPEC = """\
schema_version: 1
name: soak
workload: {{network: lenet}}
devices: {{where: 'source == "virtual"', count: all}}
matrix: {{backend: cpu}}
sampling: {{blocks: {blocks}, warmup: 0, samples: 1, deadline: 60 s}}
conditions: {{battery_percent: {{min: 0}}, battery_temp_max: 60 C, thermal_status_max: 6}}
measure: {{quantities: [latency]}}
"""

Ends = Counter[tuple[str, str]]
"""(outcome, cause) -> attempts."""


@dataclass(frozen=True)
class SoakFarm:
    """A farm of this benchmark alone."""

    state: Path
    process: subprocess.Popen[bytes]

    def command(self, *arguments: str) -> dict[str, object]:
        """What a `farm` command says in JSON. Ends the benchmark where it fails."""
        command = [sys.executable, "-m", "farm.cli", *arguments, "--state", str(self.state), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=_environment(), check=False)
        if done.returncode != 0:
            sys.exit(f"error: `farm {' '.join(arguments)}`: {done.stdout}{done.stderr}")
        said: dict[str, object] = json.loads(done.stdout)
        return said

    def wait(self, what: str, is_so: Callable[[], bool], limit_s: float, period_s: float = 0.5) -> bool:
        """Wait until it is so; False after `limit_s`. Ends the benchmark where the farm ends."""
        end = time.monotonic() + limit_s
        while not is_so():
            if self.process.poll() is not None:
                sys.exit(f"error: the farm ended before {what}:\n{(self.state / 'up.log').read_text()[-2000:]}")
            if time.monotonic() > end:
                return False
            time.sleep(period_s)
        return True

    def ready(self) -> int:
        """Virtual phones that can be given work."""
        client = connect(endpoints.settings_for(self.state))
        with contextlib.closing(client):
            found = Inventory(client).devices()
        return sum(each.facts.source is Source.VIRTUAL and each.state.health is Health.READY for each in found)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("FARM_")} | {
        "FARM_EXPORTER_PORT": "0"
    }


@contextlib.contextmanager
def soak_farm(state: Path, phones: int) -> Iterator[SoakFarm]:
    """`farm up` with every phone ready."""
    command = [sys.executable, "-m", "farm.cli", "up", "--state", str(state), "--virtual", str(phones)]
    with (state / "up.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=_environment())
        farm = SoakFarm(state, process)
        try:
            up = farm.wait("it was up", lambda: endpoints.read(state) is not None, START_S)
            if not up or not farm.wait("its phones were ready", lambda: farm.ready() == phones, START_S):
                sys.exit(f"error: {phones} virtual phones are not ready after {START_S:.0f} s; see {state}/logs")
            yield farm
        finally:
            process.terminate()
            process.wait()


def ends(database: Database) -> Ends:
    """How the attempts ended that have ended."""
    query = select(ATTEMPTS.c.outcome, ATTEMPTS.c.cause, func.count()).where(ATTEMPTS.c.ended_at.is_not(None))
    with database.read() as connection:
        rows = connection.execute(query.group_by(ATTEMPTS.c.outcome, ATTEMPTS.c.cause)).all()
    return Counter({(row[0], row[1]): int(row[2]) for row in rows})


def blocks_left(database: Database) -> int:
    """Blocks that are not over."""
    with database.read() as connection:
        return int(connection.execute(select(func.count()).where(JOBS.c.state != "done")).scalar_one())


def table(found: Ends, took_s: float) -> str:
    """The outcomes, the most frequent first."""
    lines = ["| outcome | cause | attempts |", "|---|---|--:|"]
    lines += [f"| {outcome} | {cause or '-'} | {count} |" for (outcome, cause), count in found.most_common()]
    return "\n".join([*lines, f"{found.total()} attempts in {took_s:.0f} s, {found.total() / took_s:.1f} a second"])


def reasons(ledger_url: str, experiment: str) -> list[str]:
    """A line for each of the first attempts that were not ok, from its record."""
    with Ledger(ledger_url) as ledger:
        bad = [each for each in ledger.records(experiment) if each.outcome != "ok"][:SHOWN]
    return [f"{each.device.serial} {each.outcome} {each.cause}: {' '.join(each.reasons)[:500]}" for each in bad]


def soak(state: Path, blocks: int, phones: int, limit_s: float) -> bool:
    """Run the blocks and print how they ended; whether all went well."""
    spec = state / "soak.yaml"
    spec.write_text(SPEC.format(blocks=-(-blocks // phones)))
    with soak_farm(state, phones) as farm:
        experiment = str(farm.command("run", str(spec), "--yes")["experiment"])
        start = time.monotonic()
        with contextlib.closing(Database(endpoints.settings_for(state).ledger)) as database:

            def over() -> bool:
                left = blocks_left(database)
                found = ends(database)
                print(f"{left} blocks left, not ok: {found.total() - found['ok', '']}", file=sys.stderr)
                return left == 0

            in_time = farm.wait("the blocks were over", over, limit_s, LOOK_S)
            took_s, found = time.monotonic() - start, ends(database)
    print(table(found, took_s))
    for line in reasons(endpoints.settings_for(state).ledger, experiment):
        print(line)
    if not in_time:
        print(f"not over after {limit_s / 60:.0f} minutes")
    return in_time and found.total() == found["ok", ""] >= blocks


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Count the blocks that healthy virtual phones lose.")
    parser.add_argument("--blocks", type=int, default=20_000, help="rounded up to a whole number a phone")
    parser.add_argument("--phones", type=int, default=20)
    parser.add_argument("--limit-min", type=float, default=120.0, help="give up after so many minutes")
    given = parser.parse_args()
    if given.phones < 1 or not 1 <= given.blocks <= MOST_BLOCKS_A_PHONE * given.phones:
        parser.error(f"give --phones of at least 1 and --blocks from 1 to {MOST_BLOCKS_A_PHONE} a phone")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))
    state = Path(tempfile.mkdtemp(prefix="soak-"))
    well = False
    try:
        well = soak(state, given.blocks, given.phones, given.limit_min * 60)
    finally:
        if well:
            shutil.rmtree(state)
        else:
            print(f"kept: {state}", file=sys.stderr)
    return 0 if well else FAILED


if __name__ == "__main__":
    run_command(main)
