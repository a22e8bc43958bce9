"""Jobs as people look at them: the story of one, pages of many, what a device did last."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from farm.cli import main
from orchestrator.answers import story_of, why_jobs_wait
from orchestrator.answers.waiting import each_waits
from orchestrator.ledger import Ledger
from orchestrator.ledger.rows import WaitingGroup
from orchestrator.model.errors import UnknownName
from orchestrator.model.live.waiting import WaitKind, WaitReason
from orchestrator.model.record import Doubt, DoubtCode, Outcome
from tests.unit.orchestrator import make

from .ledgers import begun, filled, measured, record_of

HOSTILE = '<script>alert("1")</script> [red]'


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/state/ledger.sqlite", rest_s=0.0) as opened:
        yield opened


def test_a_story_tells_attempts_in_order_with_cause_and_log(ledger: Ledger) -> None:
    (job,) = filled(ledger, 1)
    lost = begun(ledger, job)
    ledger.keep(
        record_of(lost, outcome=Outcome.LOST, cause="transport_lost", reasons=("the cable",), evidence=(HOSTILE,))
    )
    second = begun(ledger, job)
    under_way = story_of(ledger, job.job_id, {})
    assert [(each.outcome, each.ended_at is None) for each in under_way.tries] == [("lost", False), ("", True)]
    assert under_way.is_open and under_way.waits is None
    doubt = Doubt(code=DoubtCode.HOT, detail="41 C")
    ledger.keep(record_of(second, doubts=(doubt,)))
    told = story_of(ledger, job.job_id, None)
    first, last = told.tries
    assert (first.cause, first.reasons, first.log, first.median_ms) == (
        "transport_lost",
        ("the cable",),
        (HOSTILE,),
        None,
    )
    assert (last.outcome, last.doubts) == ("ok", (("hot", "41 C", doubt.remedy),))
    assert last.median_ms == pytest.approx(5, rel=0.01) and first.token < last.token
    assert not told.is_open and not told.may_be_retried


def test_a_story_says_why_the_job_waits(ledger: Ledger) -> None:
    (job,) = filled(ledger, 1)
    hot = WaitReason(kind=WaitKind.TEMPERATURE, text="battery at 41 C")
    assert story_of(ledger, job.job_id, {job.job_id: hot}).waits == hot
    behind = story_of(ledger, job.job_id, {}).waits
    nobody = story_of(ledger, job.job_id, None).waits
    assert behind is not None and behind.kind is WaitKind.QUEUED
    assert nobody is not None and nobody.kind is WaitKind.UNKNOWN
    with pytest.raises(UnknownName, match="no job 'nothing'"):
        story_of(ledger, "nothing", None)


def test_a_job_has_the_same_reason_in_every_place(ledger: Ledger, seed: int) -> None:
    """The scheduler may have looked at it or not: one by one, on a page of many, and in the count by reason."""
    random = Random(seed)
    jobs = [make.job("first-1", block=block) for block in range(random.randrange(3, 9))]
    ledger.submit("first-1", make.many(len(jobs), name="first"), jobs)
    names = [job.job_id for job in jobs]
    for job in random.sample(jobs, random.randrange(3)):
        tried = begun(ledger, job)
        ledger.end_attempt(job.job_id, tried.attempt, Outcome.LOST, "transport_lost")
    fresh = [row.job_id for row in ledger.listed.jobs("first-1", (), 0, len(jobs)).rows if not row.attempts]
    kinds = [WaitKind.HELD, WaitKind.BUSY, WaitKind.RETRY]
    told = {name: WaitReason(kind=random.choice(kinds), text=name) for name in {*names, fresh[-1]} - {*fresh[:-1]}}
    told[fresh[-1]] = WaitReason(kind=random.choice(kinds[:2]), text="as all that were never tried")
    assert {each_waits(ledger, names, told)[name] for name in fresh} == {told[fresh[-1]]}
    few = {name: told[name] for name in random.sample([*told], random.randrange(len(told) + 1))}
    for reasons in (told, few, None):
        page = each_waits(ledger, names, reasons)
        assert {name: story_of(ledger, name, reasons).waits for name in names} == page
        counted = Counter({wait.reason: wait.jobs for wait in why_jobs_wait(ledger, reasons)})
        assert Counter(page.values()) == counted


def test_what_waits_in_brief_is_what_waits(ledger: Ledger) -> None:
    for name, blocks in (("first", 5), ("second", 3)):
        jobs = [make.job(f"{name}-1", block=block) for block in range(blocks)]
        ledger.submit(f"{name}-1", make.many(blocks, name=name), jobs)
    running, _, waiting = ledger.jobs("first-1")[:3]
    begun(ledger, running.job)
    told = [waiting.job_id, running.job_id]
    (looked_at,) = (group for group in ledger.waiting_groups(told) if group.looked_at)
    assert looked_at.looked_at == (waiting.job_id,) and looked_at.jobs == 4, "the fifth runs"
    assert ledger.waiting_in_brief(told) == [looked_at, WaitingGroup("second-1", (), 3, ())]
    assert [(each.candidates, each.jobs) for each in ledger.waiting_in_brief(())] == [((), 4), ((), 3)]


def test_jobs_are_listed_page_by_page(ledger: Ledger) -> None:
    jobs = filled(ledger, 5)
    second = filled(ledger, 3, "second-1")
    page = ledger.listed.jobs("first-1", (), 1, 2)
    assert ([row.job_id for row in page.rows], page.total) == ([job.job_id for job in jobs[1:3]], 5)
    assert {(row.word, row.serial, row.attempts) for row in page.rows} == {("ok", "A", 1)}
    assert [row.job_id for row in ledger.listed.jobs("first-1", ("waiting",), 0, 9).rows] == [jobs[-1].job_id]
    assert ledger.listed.jobs(None, ("ok",), 0, 1).total == 6
    urgent = make.job("third-1", priority=5)
    ledger.submit("third-1", make.many(1, name="third", priority=5), [urgent])
    waiting = ledger.listed.waiting(0, 9)
    assert [row.job_id for row in waiting.rows] == [urgent.job_id, jobs[-1].job_id, second[-1].job_id]


def test_a_devices_newest_attempts_come_first(ledger: Ledger) -> None:
    jobs = filled(ledger, 4)
    found = ledger.listed.of_device("A", 2)
    assert [(row.job_id, row.experiment_id) for row in found] == [
        (jobs[2].job_id, "first-1"),
        (jobs[1].job_id, "first-1"),
    ]
    assert found[0].median_ms is not None and ledger.listed.of_device("B", 9) == []
    measured(ledger, jobs[3])
    assert ledger.listed.of_device("A", 1)[0].job_id == jobs[3].job_id


def test_the_command_tells_the_same(ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (job,) = filled(ledger, 1)
    ledger.keep(record_of(begun(ledger, job), outcome=Outcome.FAILED, cause="stable", evidence=(HOSTILE,)))
    command = ["job", job.job_id, "--state", str(tmp_path / "state")]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert f"    | {HOSTILE}" in text and "failed" in text and "on A of lab" in text
    assert main([*command, "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["tries"]
    assert (told["cause"], told["log"]) == ("stable", [HOSTILE])
