"""Study A's limits of two virtual phones that differ in memory alone, searched with trainings that are killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from orchestrator.acts.submission.prepare import prepare
from orchestrator.analysis.limits import Limit, limits
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.figures import figures_of
from orchestrator.model.device import Device
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.scheduling.strategies import Place, Result, strategy_for
from orchestrator.spec.expansion.expand import expand
from orchestrator.spec.expansion.expand import job as job_of
from orchestrator.system.config import Settings
from tests.phones import connect, disconnect, start_phones
from workers.connection.adb import AdbConnection
from workers.devices.admit import enrol_phone
from workers.devices.fleet import Fleet
from workers.engines import Engines, Host
from workers.execution.run_job import Workbench, run_job

from .conftest import Wiring

MB = 1_000_000
LEFT = {"small": 16 * MB, "large": 32 * MB}
"""The memory that the killer leaves to programs of each phone; 90 MB more are refused to them."""
SAMPLES, EPOCHS = 512, 1
"""Enough work that a probe lasts for many of the killer's looks."""


def profile(folder: Path, name: str) -> str:
    """A Galaxy S7 whose memory is all in use but for so much."""
    floor = 90 * MB
    system = 4_294_967_296 - LEFT[name] - floor
    path = folder / f"{name}.yaml"
    limits = f"low_memory: {{system_bytes: {system}, kill_free_bytes: {floor}}}"
    path.write_text(f"extends: galaxy_s7\nname: {name}\napis: [cpu]\n{limits}\n")
    return str(path)


@pytest.fixture
def asked(tmp_path: Path, lab_settings: Settings, seed: int) -> Experiment:
    """Each layer is trained alone and then all of them, as in `study_a_limits.yaml`."""
    rng = np.random.default_rng(seed)
    images, labels = rng.integers(0, 256, (SAMPLES, 28, 28), dtype=np.uint8), rng.integers(0, 10, SAMPLES)
    np.savez(tmp_path / "set.npz", x_train=images, y_train=labels)
    training = {
        "dataset": {"inputs": "set.npz"},
        "epochs": EPOCHS,
        "pretraining": EPOCHS,
        "batch": 64,
        "learning_rate": 0.45,
    }
    experiment = Experiment.model_validate(
        {
            "name": "limits",
            "workload": {"network": "classifier_784", "parameters": {"hidden": [512, 250]}, "training": training},
            "matrix": {"backend": "cpu", "threads": 1, "updates": "host"},
            "strategy": {"limit_search": {"dimension": "hidden.0", "tolerance": "40 %", "most": 8192}},
        }
    )
    return prepare(experiment, tmp_path, Artifacts(lab_settings.state))


@pytest.fixture
def phones(lab: Wiring, tmp_path: Path) -> Iterator[list[AdbConnection]]:
    with start_phones(tmp_path / "phones", [profile(tmp_path, name) for name in LEFT]) as running:
        for phone in running.phones:
            connect(lab.server, phone.serial)
        yield [AdbConnection(phone.serial, lab.server, serial=phone.name) for phone in running.phones]
        for phone in running.phones:
            disconnect(lab.server, phone.serial)


class Search:
    """A search as the scheduler does it: after each probe a new strategy, told all results."""

    def __init__(self, asked: Experiment, bench: Workbench, device: Device) -> None:
        self.asked, self.bench, self.device = asked, bench, device
        self.records: list[Record] = []
        self.results: list[Result] = []
        self.afterwards: Outcome | None = None

    def run(self) -> None:
        serial = self.device.serial
        first = todo = list(expand(self.asked, "e-1", [self.device]).jobs)
        while todo:
            (job,) = todo
            record = self.block(job, attempt=1)
            self.records.append(record)
            self.results.append(Result(job, record.outcome, record.cause, figures_of(record, job.cell)))
            strategy = strategy_for(Place(self.asked, "e-1", (serial,)), Artifacts(self.bench.settings.state))
            strategy.tell(self.results)
            todo = [job_of(self.asked, "e-1", slot) for slot in strategy.ask()]
        self.afterwards = self.block(*first, attempt=2).outcome

    def block(self, job: Job, attempt: int) -> Record:
        serial = self.device.serial
        assignment = Assignment(
            serial=serial, host="testhost", job_id=job.job_id, job=job, attempt=attempt, token=attempt, ttl_s=15.0
        )
        return run_job(assignment, self.bench, lambda: None, lambda *_: None)

    @property
    def found(self) -> Limit:
        cells = {result.job.cell.cell_id: result.job.cell for result in self.results}
        (found,) = limits(self.asked, [result.block for result in self.results if result.block], cells)
        return found


def test_two_phones_have_limits_of_their_own(
    asked: Experiment, phones: list[AdbConnection], lab_settings: Settings
) -> None:
    bench = Workbench(lab_settings, Fleet(), Engines(Host.alone(lab_settings.state)), "worker-1")
    searches = []
    for phone in phones:
        member, state = enrol_phone(phone, lab_settings)
        bench.fleet.enrol(member, state)
        searches.append(Search(asked, bench, Device(facts=member.facts, state=state)))
    threads = [threading.Thread(target=search.run) for search in searches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    small, large = searches
    for search in searches:
        assert search.found.over and search.found.consistent, search.found
        assert search.found.largest is not None and search.found.smallest is not None
        assert search.found.smallest.ended == "killed"
        assert "lowmemorykiller: Kill 'pocketfarm-agent'" in search.found.smallest.reason
        width = search.found.largest.value
        assert search.found.largest.weights == 785 * width + (width + 1) * 250 + 251 * 10
        ran = next(record for record in search.records if record.samples)
        stages = [stage for stage in ("pretrain:encode1", "pretrain:encode2", "train") for _ in range(EPOCHS)]
        assert [each.stage for each in ran.samples] == stages
        assert search.afterwards in (Outcome.OK, Outcome.INVALID), "the phone works after a kill"
    killed = next(record for record in small.records if record.outcome is Outcome.KILLED)
    assert killed.cause == "killed" and "event" in killed.evidence[-1] and killed.runs_on is not None
    assert small.found.largest and large.found.largest and large.found.largest.value > small.found.largest.value
