"""One run under faults: a farm of its own, experiments, the nemesis beside them, and the history of what happened."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy import select

from farm import endpoints, processes
from orchestrator.coordination import keys
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.ledger.database import Database
from orchestrator.ledger.rows import OPEN
from orchestrator.ledger.tables import ATTEMPTS
from tests.waiting import eventually
from virtual_phones.programs.execution import RUNS

from .history import Attempt, History, Hit, Job, Measured, Run
from .nemesis import let_loose
from .people import people
from .power_cut import Durable
from .running_farm import RunningFarm, running_farm

SPEC = """\
schema_version: 1
name: {name}
workload: {{network: lenet}}
devices: {{where: 'source == "virtual"', count: {count}}}
matrix: {{backend: cpu}}
sampling: {{blocks: {blocks}, warmup: 0, samples: {samples}, deadline: 60 s}}
conditions:
  {{battery_percent: {{min: 0}}, battery_temp_max: 60 C, thermal_status_max: 6, free_storage: 1 MiB,
  screen_dimmed: true, sync_off: true}}
measure: {{quantities: [latency]}}
"""
SAMPLES = 20
MOST_BLOCKS = 1000
"""The most blocks of one cell."""
SUBMISSIONS = 2
"""The experiments of each person who submits."""
LOOK_S = 5.0
REST_S = 120.0
"""The time for the farm to come to rest when the last job is over: receipts, settings, leases."""


@dataclass(frozen=True)
class Campaign:
    """The phones, jobs and faults that are asked for."""

    seed: int
    phones: int
    jobs: int
    faults: int | None
    """The least number of faults; more while jobs are open. None: nothing is done to the farm."""
    limit_s: float
    people: int = 0
    """The number of people who read and submit over HTTP meanwhile."""


def run(campaign: Campaign, folder: Path, say: Callable[[str], None] = lambda _: None) -> History:
    """Run it in an empty folder; the history. Fails where the jobs are not over within the limit."""
    state = folder / "farm"
    durable = Durable(state, folder / "durable")
    with running_farm(state, campaign.phones, durable) as farm, ExitStack() as stack:
        folders = {phone.name: phone.root.parent for phone in farm.phones.phones()}
        before = {serial: _settings(where) for serial, where in folders.items()}
        accepted = _submit(farm, campaign, folder)
        say(f"{sum(accepted.values())} jobs on {campaign.phones} phones")
        url = endpoints.settings_for(farm.state).ledger
        end = time.monotonic() + campaign.limit_s
        crowd = stack.enter_context(people(farm.state, campaign.people, SUBMISSIONS, campaign.seed, _of_person))

        def is_over() -> bool:
            left = _open_jobs(url)
            say(f"{left} jobs are open")
            return left == 0 or time.monotonic() > end

        hits: tuple[Hit, ...] = ()
        if campaign.faults is None:
            eventually(is_over, campaign.limit_s, "jobs are open", every_s=LOOK_S)
        else:
            hits = let_loose(farm, list(folders), campaign.seed, is_over, least=campaign.faults)
        farm.phones.clear()
        say(f"{len(hits)} faults")
        stack.close()
        accepted |= crowd.accepted
        eventually(lambda: _open_jobs(url) == 0, max(60.0, end - time.monotonic()), "jobs are open")
        left = _at_rest(farm, url)
    left["processes"] = len(processes.marked(farm.state))
    after = {serial: _settings(where) for serial, where in folders.items()}
    with contextlib.closing(Database(url)) as database, Ledger(url) as ledger:
        jobs, attempts, records = _jobs(ledger), _attempts(database), _records(ledger)
    return History(
        accepted=accepted,
        answers=dict(crowd.answers),
        wrong=crowd.wrong,
        samples=SAMPLES,
        hits=hits,
        jobs=jobs,
        attempts=attempts,
        records=records,
        runs=tuple(each for serial, where in folders.items() for each in _runs(serial, where)),
        settings={serial: (before[serial], after[serial]) for serial in folders},
        left=left,
    )


def _submit(farm: RunningFarm, campaign: Campaign, folder: Path) -> dict[str, int]:
    """Half of the jobs for whichever phone is free, half for each phone: experiment -> jobs."""
    draw = random.Random(campaign.seed)
    accepted: dict[str, int] = {}
    left = campaign.jobs
    while left > 0:
        count = draw.choice(["any", "all"])
        phones = campaign.phones if count == "all" else 1
        blocks = max(1, min(MOST_BLOCKS, left // phones, draw.randint(5, MOST_BLOCKS)))
        name = f"chaos-{campaign.seed}-{len(accepted)}"
        path = folder / f"{name}.yaml"
        path.write_text(SPEC.format(name=name, count=count, blocks=blocks, samples=SAMPLES))
        accepted[str(farm.cli("run", str(path), "--yes")["experiment"])] = blocks * phones
        left -= blocks * phones
    return accepted


def _of_person(name: str) -> dict[str, Any]:
    """The experiment of a person."""
    return dict(yaml.safe_load(SPEC.format(name=name, count="any", blocks=1, samples=SAMPLES)))


def _open_jobs(url: str) -> int:
    with Ledger(url) as ledger:  # after a power cut it is another file
        return sum(count for state, count in ledger.counts().items() if state in OPEN)


def _at_rest(farm: RunningFarm, url: str) -> dict[str, int]:
    """Return what is left when the farm has come to rest, or has not within the limit."""
    end = time.monotonic() + REST_S
    while any((left := _left(farm, url)).values()) and time.monotonic() < end:
        time.sleep(0.5)
    return left


def _left(farm: RunningFarm, url: str) -> dict[str, int]:
    """Count the things that a farm at rest has none of."""
    spool = farm.state / "spool"
    redis = farm.redis()
    with Ledger(url) as ledger:
        under_way, dead = len(ledger.running()), len(ledger.dead.every())
    return {
        "leases": int(redis.scard(keys.LEASED)),  # type: ignore[arg-type]
        "records in the streams": sum(int(redis.xlen(keys.records(host))) for host in redis.smembers(keys.SENDERS)),
        "records in the spool": len([*spool.glob("*.json"), *spool.glob("*.bundle")]),
        "records set aside": dead + len(list((spool / "dead").glob("*"))),
        "attempts under way": under_way,
        "agents": sum(phone.agents for phone in farm.phones.phones()),
        "devices left changed": sum(bool(each.state.left_changed) for each in Inventory(redis).devices()),
    }


def _settings(phone: Path) -> Mapping[str, object]:
    """The phone's own word on its settings. The phone is the register: this is no copy of the farm's."""
    saved = json.loads((phone / "state.json").read_text())
    return {"settings": saved["settings"], "radios_on": saved["radios_on"]}


def _runs(serial: str, phone: Path) -> Sequence[Run]:
    path = phone / RUNS
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [Run(serial, line["t"], line["marker"], tuple(line["beside"])) for line in lines]


def _jobs(ledger: Ledger) -> tuple[Job, ...]:
    return tuple(
        Job(row.job_id, experiment.id, row.state, row.outcome, row.cause)
        for experiment in ledger.experiments()
        for row in ledger.jobs(experiment.id)
    )


def _attempts(database: Database) -> tuple[Attempt, ...]:
    with database.read() as connection:
        rows = connection.execute(select(ATTEMPTS)).all()
    return tuple(
        Attempt(r.job_id, r.attempt, r.token, r.serial, r.started_at, r.ended_at, r.outcome, r.cause) for r in rows
    )


def _records(ledger: Ledger) -> tuple[Measured, ...]:
    return tuple(
        Measured(
            record.job_id,
            record.attempt,
            record.token,
            record.device.serial,
            str(record.outcome),
            sum(sample.phase == "timed" for sample in record.samples),
        )
        for experiment in ledger.experiments()
        for record in ledger.records(experiment.id)
    )
