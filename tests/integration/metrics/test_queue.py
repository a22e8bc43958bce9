"""Jobs by device and by experiment, of random choices of devices, beside a plain count of the ledger's jobs."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from prometheus_client.core import Metric

from orchestrator.ledger import Ledger
from orchestrator.ledger.database import Database
from orchestrator.metrics import queue
from orchestrator.model.device import Api, Precision
from orchestrator.model.experiment import Experiment, Workload
from orchestrator.model.job import Cell, Job

PHONES = [f"phone-{n}" for n in range(6)]
SPEC = Experiment(name="many", workload=Workload(network="lenet"))
OPEN = ("waiting", "placed", "running")


def random_job(rng: random.Random, experiment_id: str, block: int) -> Job:
    cell = Cell(workload=SPEC.workload, backend=Api.OPENCL, precision=Precision.FP32)
    return Job(
        experiment_id=experiment_id, cell=cell, block=block, sampling=SPEC.sampling, conditions=SPEC.conditions,
        candidates=tuple(rng.sample(PHONES, rng.randint(1, 4))), measure=SPEC.measure,
    )  # fmt: skip


def counts(family: Metric, name: str) -> Counter[tuple[str, str]]:
    of_state = {(s.labels[name], s.labels["state"]): int(s.value) for s in family.samples if s.labels["state"] in OPEN}
    return Counter({key: jobs for key, jobs in of_state.items() if jobs})


def test_every_open_job_is_counted_where_it_is(tmp_path: Path, seed: int) -> None:
    """An experiment under way has series however many were submitted after it."""
    rng, url = random.Random(seed), f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    of_devices, of_experiments = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    with Ledger(url) as ledger:
        ids = [f"many-{n}" for n in range(queue.MAX_EXPERIMENTS + 9)]
        for each in ids:
            busy = each in (ids[0], ids[5], ids[-1])
            jobs = [random_job(rng, each, block) for block in range(rng.randint(3, 9) if busy else 1)]
            assert ledger.submit(each, SPEC.model_copy(update={"name": each}), jobs)
            for job in jobs if busy else ():
                chosen = rng.choice(job.candidates)
                if (state := rng.choice(OPEN)) == "waiting" or not ledger.begin_attempt(job.job_id, chosen, "lab", 60):
                    of_devices.update((serial, "waiting") for serial in job.candidates)
                    state = "waiting"
                else:
                    of_devices[chosen, state] += 1
                of_experiments[each, state] += 1
                if state == "running":
                    ledger.mark_running([job.job_id])
            if not busy:
                ledger.cancel(each)
        database = Database(url)
        with database.read() as connection:
            families = {family.name: family for family in queue.queue_families(connection, None)}
        database.close()
    assert counts(families["farm_device_jobs"], "serial") == of_devices
    assert counts(families["farm_experiment_jobs"], "experiment") == of_experiments
