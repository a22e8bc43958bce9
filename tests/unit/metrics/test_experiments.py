"""The times when experiments began and ended: an end is told when no job is open any more."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import event

from orchestrator.ledger import Ledger
from orchestrator.ledger.database import padded
from orchestrator.metrics.queue import MAX_EXPERIMENTS, queue_families
from orchestrator.model.live.waiting import WaitKind, WaitReason
from tests.integration.metrics.content import Content, device, finish, submit
from tests.unit.comparison.conftest import farm, ledger

__all__ = ["farm", "ledger"]
pytestmark = pytest.mark.unit


def told(ledger: Ledger, what: str) -> dict[str, float]:
    with ledger._database.read() as connection:
        families = {family.name: family for family in queue_families(connection, None)}
    samples = families[f"farm_experiment_{what}_timestamp_seconds"].samples
    return {each.labels["experiment"]: each.value for each in samples}


def ended(ledger: Ledger) -> dict[str, float]:
    return told(ledger, "ended")


def test_other_experiments_do_not_push_a_nightly_out(ledger: Ledger) -> None:
    """The alert `NightlyWithoutResults` would find nothing to watch."""
    submit(ledger, "cats-nightly", ["nexus-5"])
    submit(ledger, "adhoc", ["nexus-5"], description="no nightly")
    finish(ledger, ledger.jobs("cats-nightly-1")[0].job, Content([device("nexus-5", 1)]), random.Random(1))
    for number in range(MAX_EXPERIMENTS):
        submit(ledger, f"other{number}", ["nexus-5"])
    assert told(ledger, "submitted").keys() == {"cats-nightly", *(f"other{n}" for n in range(MAX_EXPERIMENTS))}
    assert told(ledger, "last_result").keys() == {"cats-nightly"}


def test_an_experiment_ends_with_its_last_job(ledger: Ledger) -> None:
    submit(ledger, "one", ["nexus-5"])
    content, rng = Content([device("nexus-5", 1)]), random.Random(1)
    *first, last = ledger.jobs("one-1")
    for row in first:
        finish(ledger, row.job, content, rng)
    assert ended(ledger) == {}, "a job is open, though others have ended"
    finish(ledger, last.job, content, rng)
    assert ended(ledger)["one"] == max(row.ended_at or 0.0 for row in ledger.jobs("one-1"))


def test_scrapes_are_made_of_few_statements(ledger: Ledger) -> None:
    """A text of its own for each number of jobs and experiments filled SQLite's cache of statements, megabytes."""
    waiting, found = list[str](), list[set[str]]()
    for number in range(20):
        submit(ledger, f"other{number}", ["nexus-5"])
        waiting += [row.job.job_id for row in ledger.jobs(f"other{number}-1")]
        found.append(_asked(ledger, waiting))
    every = set.union(*found)
    assert len(every) < 50, "114 if each number had its own"


def _asked(ledger: Ledger, waiting: list[str]) -> set[str]:
    """The statements of a scrape."""
    texts: set[str] = set()

    def note(*said: object) -> None:
        texts.add(str(said[2]))

    engine = ledger._database._engine
    event.listen(engine, "before_cursor_execute", note)
    with ledger._database.read() as connection:
        list(queue_families(connection, {job: WaitReason(kind=WaitKind.BUSY, text="") for job in waiting}))
    event.remove(engine, "before_cursor_execute", note)
    return texts


def test_lists_are_padded_within_what_a_statement_may_name() -> None:
    """SQLite takes 32766 values: 20000 must not become 32768."""
    assert padded([]) == [] and padded(range(5)) == [0, 1, 2, 3, 4, 4, 4, 4] and len(padded(range(512))) == 512
    assert len(padded(range(20_000))) == 20_000
