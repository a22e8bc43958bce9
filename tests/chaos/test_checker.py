"""The checker finds each violation that is planted into a history that keeps every promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from .checker import violations
from .history import Attempt, History, Hit, Job, Measured, Run

P, Q = "phone-p", "phone-q"
GOOD = History(
    accepted={"e": 2},
    samples=3,
    hits=(Hit("unplug", P, 100.0, 103.0), Hit("kill_worker", "worker", 200.0, 201.0)),
    jobs=(Job("a", "e", "done", "ok", ""), Job("b", "e", "done", "killed", "killed")),
    attempts=(
        Attempt("a", 1, 1, P, 99.0, 110.0, "lost", "transport_lost"),
        Attempt("a", 2, 3, P, 111.0, 115.0, "ok", ""),
        Attempt("b", 1, 2, Q, 198.0, 205.0, "lost", "worker_died"),
        Attempt("b", 2, 4, Q, 206.0, 210.0, "killed", "killed"),
    ),
    records=(
        Measured("a", 1, 1, P, "lost", 1),
        Measured("a", 2, 3, P, "ok", 3),
        Measured("b", 2, 4, Q, "killed", 1),
    ),
    runs=(
        Run(P, 99.5, f"{P}/a/1", ()),
        Run(P, 112.0, f"{P}/a/2", (f"{P}/a/2/primed",)),
        Run(Q, 199.0, f"{Q}/b/1", ()),
        Run(Q, 207.0, f"{Q}/b/2", ()),
    ),
    settings={P: ({"dim": 0}, {"dim": 0})},
    left={"leases": 0},
)


def test_a_good_history() -> None:
    assert violations(GOOD) == []


def swap(rows: tuple[object, ...], index: int, **changes: object) -> tuple[object, ...]:
    return (*rows[:index], replace(rows[index], **changes), *rows[index + 1 :])  # type: ignore[type-var]


PLANTED = {
    "a job is gone": ({"accepted": {"e": 3}}, "3 jobs were accepted"),
    "an experiment came twice": ({"accepted": {}}, "nobody was told of"),
    "a job is open": ({"jobs": swap(GOOD.jobs, 0, state="waiting")}, "is waiting at the end"),
    "a record is gone": ({"records": GOOD.records[:1] + GOOD.records[2:]}, "has 0 results"),
    "a record came twice": ({"records": (*GOOD.records, replace(GOOD.records[1], attempt=3))}, "has 2 results"),
    "a cut record": ({"records": swap(GOOD.records, 1, timed=2)}, "2 of 3 samples"),
    "a stale record": ({"records": swap(GOOD.records, 1, token=1)}, "its result has token 1"),
    "lost by the farm": ({"jobs": swap(GOOD.jobs, 1, outcome="lost", cause="worker_died")}, "ended lost"),
    "failed by the farm": ({"jobs": swap(GOOD.jobs, 0, outcome="failed"), "hits": GOOD.hits[1:]}, "ended failed"),
    "charged, the phone was well": ({"hits": GOOD.hits[1:]}, "phone-p was well"),
    "charged for a failure": ({"attempts": swap(GOOD.attempts, 2, outcome="failed", cause="internal")}, "was well"),
    "attempts overlap": ({"attempts": swap(GOOD.attempts, 0, ended=112.0)}, "tokens 1 and 3 overlap"),
    "an attempt never ended": ({"attempts": swap(GOOD.attempts, 2, ended=None)}, "tokens 2 and 4 overlap"),
    "a token twice": ({"attempts": swap(GOOD.attempts, 2, token=1)}, "token 1 was handed out 2 times"),
    "tokens fall": ({"attempts": swap(GOOD.attempts, 0, token=9)}, "do not grow"),
    "two masters": ({"runs": swap(GOOD.runs, 1, beside=(f"{P}/b/1",))}, "began while phone-p/b/1 ran"),
    "too late": ({"runs": swap(GOOD.runs, 0, at=113.0)}, "token 1 began after token 3"),
    "out of nowhere": ({"runs": (*GOOD.runs, Run(P, 300.0, f"{P}/c/1", ()))}, "no such attempt"),
    "a setting stays": ({"settings": {P: ({"dim": 0}, {"dim": 1})}}, "left changed"),
    "something stays": ({"left": {"leases": 2}}, "2 leases are left"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_planted(planted: str) -> None:
    changes, said = PLANTED[planted]
    found = violations(replace(GOOD, **changes))  # type: ignore[arg-type]
    assert any(said in each for each in found), found


def test_a_job_may_be_lost_by_its_phone() -> None:
    lost = replace(GOOD, jobs=swap(GOOD.jobs, 0, outcome="lost", cause="transport_lost"))  # type: ignore[arg-type]
    assert violations(lost) == []
