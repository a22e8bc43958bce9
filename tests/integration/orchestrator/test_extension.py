"""Held jobs on SQLite and on PostgreSQL: one decision about each lane, by whoever comes first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.ledger import JobState, Lane, Ledger
from orchestrator.model.experiment import Sampling
from orchestrator.model.job import Job
from orchestrator.model.record import Outcome
from orchestrator.spec.expansion.expand import Expansion, expand
from tests.unit.orchestrator import make

count = iter(range(10_000))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'l.sqlite'}" if request.param == "sqlite" else request.getfixturevalue("postgres")


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger(url) as opened:
        yield opened


def submitted(ledger: Ledger, serials: str = "AB") -> Expansion:
    experiment_id = f"x{next(count)}"
    wanted = make.experiment(sampling=Sampling(blocks=1, target_interval=0.05, max_blocks=4))
    expansion = expand(wanted, experiment_id, [make.device(serial) for serial in serials])
    ledger.submit(experiment_id, wanted, expansion.jobs, (), expansion.reserve)
    return expansion


def done(ledger: Ledger, job: Job) -> None:
    assignment = ledger.begin_attempt(job.job_id, job.candidates[0], "lab", 1.0)
    assert assignment is not None
    ledger.keep(make.record(job, attempt=1, token=assignment.token, serial=assignment.serial, outcome=Outcome.OK))


def lanes(ledger: Ledger, expansion: Expansion) -> list[Lane]:
    return [lane for lane in ledger.undecided(1000) if lane.experiment_id == expansion.jobs[0].experiment_id]


def following(job: Job) -> Job:
    return Job.model_validate({**job.model_dump(), "block": job.block + 1})  # a copy would keep the id


def test_a_lane_is_due_when_only_held_jobs_are_left(ledger: Ledger) -> None:
    expansion = submitted(ledger)
    assert lanes(ledger, expansion) == []
    a, b = expansion.jobs
    done(ledger, a)
    (lane,) = lanes(ledger, expansion)
    assert lane.candidates == ("A",) and lane.held == {expansion.reserve[0].job_id}
    assert ledger.begin_attempt(expansion.reserve[0].job_id, "A", "lab", 1.0) is None  # what is held is not begun
    assert ledger.extend(lane, [expansion.reserve[0]], [following(expansion.reserve[0])])
    assert lanes(ledger, expansion) == []
    assert [row.state for row in ledger.lane_jobs(lane)] == [JobState.DONE, JobState.WAITING, JobState.HELD]
    assert not ledger.extend(lane, [])  # decided already
    done(ledger, expansion.reserve[0])
    (lane,) = lanes(ledger, expansion)
    assert ledger.extend(lane, []) and not ledger.experiment(a.experiment_id).finished
    done(ledger, b)
    (lane,) = lanes(ledger, expansion)
    assert ledger.extend(lane, []) and ledger.experiment(a.experiment_id).finished
    assert ledger.counts(a.experiment_id) == {"ok": 3}


def test_of_several_decisions_at_once_one_counts(url: str, ledger: Ledger) -> None:
    expansion = submitted(ledger, "A")
    done(ledger, expansion.jobs[0])
    (lane,) = lanes(ledger, expansion)
    held = expansion.reserve[0]
    start, answers = threading.Barrier(4), []

    def decide() -> None:
        with Ledger(url) as own:
            start.wait(20)
            answers.append(own.extend(lane, [held], [following(held)]))

    threads = [threading.Thread(target=decide) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answers) == [False, False, False, True]
    assert ledger.counts(held.experiment_id) == {"ok": 1, "waiting": 1, "held": 1}
