"""The newest figures win, whatever the order in which records come; a starting exporter finds them again."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.analysis.statistics import latency
from orchestrator.figures import timed_ms, times_of
from orchestrator.ledger import Ledger
from orchestrator.ledger.database import Database
from orchestrator.metrics import results
from orchestrator.metrics.results import Results
from orchestrator.model.experiment import Sampling, Workload
from orchestrator.model.job import Job
from orchestrator.model.record import Record

from .content import Content, device, finish, submit


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger(url) as ledger:
        yield ledger


@pytest.fixture
def database(url: str, ledger: Ledger) -> Iterator[Database]:
    database = Database(url)
    yield database
    database.close()


Medians = dict[tuple[str, str, str], float]
"""(experiment, serial, backend) -> median."""


def update(following: Results, database: Database) -> Medians:
    """Return the medians after all that is new."""
    with database.read() as connection:
        following.update(connection)
        while following.due:
            following.update(connection)
    latency = next(family for family in following.families() if family.name == "farm_results_latency_seconds")
    return {
        (sample.labels["experiment"], sample.labels["serial"], sample.labels["backend"]): sample.value
        for sample in latency.samples
        if sample.labels["stat"] == "median" and "mode=" not in sample.labels["options"]
    }


def measure(ledger: Ledger, experiment: str, serial: str, seed: int, run: int = 1) -> Medians:
    """Finish every job of a new experiment."""
    content, rng = Content([device(serial, 0)]), random.Random(seed)
    submit(ledger, experiment, [serial], run=run)
    jobs: list[Job] = [row.job for row in ledger.jobs(f"{experiment}-{run}")]
    rng.shuffle(jobs)
    by_backend: dict[str, list[Record]] = {}
    for job in jobs:
        by_backend.setdefault(job.cell.backend.value, []).append(finish(ledger, job, content, rng))
    return medians(experiment, serial, by_backend)


def test_experiments_stand_side_by_side_and_a_later_run_replaces_an_earlier_one(
    ledger: Ledger, database: Database, seed: int
) -> None:
    rng, following = random.Random(seed), Results()
    expected = update(following, database)
    assert expected == {}
    for run in range(8):
        name, serial = rng.choice(("one", "two")), rng.choice(("galaxy-s7", "nexus-5"))
        expected |= measure(ledger, name, serial, seed + run, run)
        assert update(following, database) == expected
    assert update(following, database) == expected, "nothing is new"
    assert update(Results(), database) == expected, "a starting exporter reads the same"


def test_names_without_end_take_no_places_of_other_results(
    ledger: Ledger, database: Database, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(results, "MAX_EXPERIMENTS", 2)
    monkeypatch.setattr(results, "MAX_RESULTS", 6)
    other = measure(ledger, "other", "nexus-5", seed)
    found = [measure(ledger, f"commit-{n}", "galaxy-s7", seed) for n in range(4)]
    assert update(Results(), database) == other | found[2] | found[3]


def test_other_modes_do_not_take_the_place_of_steady_figures(ledger: Ledger, database: Database, seed: int) -> None:
    following = Results()
    first = measure(ledger, "one", "galaxy-s7", seed)
    assert update(following, database) == first
    content, rng = Content([device("galaxy-s7", 0)]), random.Random(seed + 1)
    training = {"dataset": {"named": "digits"}, "epochs": 3}
    trains = Workload.model_validate({"network": "squeezenet_v1_0", "training": training})
    submit(ledger, "cold", ["galaxy-s7"], sampling=Sampling(mode="cold"))
    submit(ledger, "trains", ["galaxy-s7"], workload=trains, sampling=Sampling(warmup=0, samples=3))
    for row in (*ledger.jobs("cold-1"), *ledger.jobs("trains-1")):
        finish(ledger, row.job, content, rng)
    assert update(following, database).items() >= first.items()
    (latency,) = (each for each in following.families() if each.name == "farm_results_latency_seconds")
    assert {sample.labels["options"] for sample in latency.samples} == {"", "mode=cold", "mode=training"}


def test_series_are_bounded(ledger: Ledger, database: Database, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(results, "MAX_RESULTS", 3)
    measure(ledger, "one", "galaxy-s7", seed)
    newest = measure(ledger, "two", "nexus-5", seed)
    left = update(Results(), database)
    assert len(left) == 3
    assert newest.items() <= left.items()


def test_time_is_bounded_and_the_newest_figures_come_first(
    ledger: Ledger, database: Database, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(results, "BUDGET_S", 0.0)
    first, second = measure(ledger, "one", "galaxy-s7", seed), measure(ledger, "two", "galaxy-s7", seed + 1)
    following = Results()
    with database.read() as connection:
        following.update(connection)
        assert following.due == 4, "two backends of two experiments"
        monkeypatch.setattr(results, "BUDGET_S", 60.0)
        following.update(connection)
    assert following.due == 0
    assert update(following, database) == first | second


def test_neither_samples_nor_power_stay_in_memory(ledger: Ledger, database: Database, seed: int) -> None:
    measure(ledger, "one", "galaxy-s7", seed)
    following = Results()
    update(following, database)
    kept = pickle.dumps(following)
    assert b"orchestrator.model.event" not in kept and b"Record" not in kept
    assert b"orchestrator.model.event" in pickle.dumps(list(ledger.records("one-1")))


def medians(experiment: str, serial: str, by_backend: dict[str, list[Record]]) -> Medians:
    found = {
        backend: latency([times for record in records if (times := times_of(timed_ms(record))) is not None])
        for backend, records in by_backend.items()
    }
    return {
        (experiment, serial, backend): each.median_ms * 1e-3
        for backend, each in found.items() if each and each.median_ms
    }  # fmt: skip
