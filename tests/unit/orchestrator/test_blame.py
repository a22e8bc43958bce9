"""The fault of a lost attempt, cause by cause: what no job pays for, however often it happens."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from orchestrator.ledger import blame

BUDGET = 3
ENDING = frozenset[str]().union(*(causes for causes, _ in blame.ENDING))


def verdicts(cause: str) -> Iterator[blame.Verdict]:
    """Yield the verdicts on a job that is lost by one cause again and again."""
    for times in itertools.count():
        own = 0 if cause in blame.NOT_THE_JOB else times + 1
        yield blame.verdict_on(cause, [cause] * times, own, BUDGET)


@pytest.mark.parametrize("cause", sorted(blame.NOT_THE_JOB - ENDING - {"worker_died"}))
def test_what_others_did_ends_no_job(cause: str) -> None:
    found = list(itertools.islice(verdicts(cause), 1000))
    assert not any(each.is_final for each in found)
    pauses = [each.pause_s for each in found]
    assert pauses == sorted(pauses) and pauses[-1] <= blame.MAX_PAUSE_S
    assert pauses[-1] >= 10.0, "a fault that lasts fills no ledger with attempts"


@pytest.mark.parametrize(
    ("cause", "ended_by", "many"),
    [
        *((cause, cause, most + 1) for causes, most in blame.ENDING for cause in sorted(causes)),
        ("worker_died", blame.KILLS_WORKER, blame.SUSPECT_AFTER + blame.LONE_DEATHS),
        ("transport_lost", "transport_lost", BUDGET),
    ],
)
def test_what_ends_a_job_and_when(cause: str, ended_by: str, many: int) -> None:
    found = list(itertools.islice(verdicts(cause), many))
    assert [each.is_final for each in found] == [False] * (many - 1) + [True] and found[-1].cause == ended_by


def test_deaths_of_a_worker_count_where_the_job_ran_alone() -> None:
    """A host that is cut off says nothing, nor does what happened before."""
    before = ["lease_expired"] * 20 + ["worker_died"] * (blame.LONE_DEATHS - 2)
    assert not blame.verdict_on("worker_died", before, 0, BUDGET).is_final
    assert not blame.verdict_on("lease_expired", [*before, "worker_died"], 0, BUDGET).is_final
    assert blame.verdict_on("worker_died", [*before, "lease_expired", "worker_died"], 0, BUDGET).is_final
    assert not blame.verdict_on("worker_died", [blame.ACQUITTED] * 20, 0, BUDGET).is_final
