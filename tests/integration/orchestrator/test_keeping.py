"""Records that are kept together leave the same as records that are kept one after the other."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import create_engine, text

from orchestrator.ledger import KeepResult, Ledger
from orchestrator.model.record import Outcome, Record
from tests.unit.orchestrator import make

ENDS = (
    *[(Outcome.OK, "")] * 4,
    (Outcome.FAILED, "wrong_output"),
    (Outcome.LOST, "transport_lost"),
    (Outcome.LOST, "host_stopping"),
    (Outcome.CANCELLED, "cancelled"),
    (Outcome.OK, "kills_worker"),
)
TABLES = {
    "jobs": "id, state, outcome, cause, attempts, failures, token, not_before > 0",
    "attempts": "job_id, attempt, token, serial, outcome, cause, ended_at IS NULL",
    "records": "job_id, attempt, token, outcome, body",
    "figures": "job_id, attempt, median_ms, error, body",
    "device_health": "serial, failures, quarantined_at IS NULL, reason",
    "host_health": "host, failures, quarantined_at IS NULL, reason",
}
"""The columns that can be compared of two ledgers: no times, and no numbers of changes."""


def test_together_or_one_after_the_other(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    for turn in range(4):
        chance, now = dice.getrandbits(64), time.time()
        found = [_left(tmp_path / f"{turn}-{most}", random.Random(chance), most, now) for most in (1, 30)]
        assert found[0] == found[1], f"seed {chance}"


def _left(folder: Path, dice: random.Random, most: int, now: float) -> object:
    """Return what becomes of the same random records, of this time, where at most so many are kept at once."""
    folder.mkdir()
    url = f"sqlite:///{folder / 'ledger.sqlite'}"
    with Ledger(url, quarantine_after=2) as ledger:
        sent, before = _sent(ledger, dice, now), ledger.news()
        assert before is not None
        bodies = [(_as_sent(each, dice), "lab") for each in sent]
        parts = [bodies[start : start + most] for start in range(0, len(bodies), most)]
        results = [result for part in parts for result in _kept(ledger, part)]
        assert {KeepResult.NEW, KeepResult.DUPLICATE, KeepResult.STALE} == set(results)
        news = ledger.news(before.number)
    assert news is not None
    engine = create_engine(url)
    with engine.connect() as connection:
        rows = {
            name: sorted(map(tuple, connection.execute(text(f"SELECT {what} FROM {name}"))), key=repr)
            for name, what in TABLES.items()
        }
    engine.dispose()
    return results, rows, set(news.lanes), set(news.attempts)


def _kept(ledger: Ledger, part: Sequence[tuple[bytes, str]]) -> list[KeepResult]:
    with ledger.keeping(ledger.prepare(part)) as results:
        return results


def _as_sent(record: Record, dice: random.Random) -> bytes:
    """Some by a newer version, which names other jobs in front of its own."""
    body = record.model_dump_json().encode()
    return body if dice.random() < 0.7 else b'{"after":{"job_id":"%d"},' % dice.randrange(9) + body[1:]


def _sent(ledger: Ledger, dice: random.Random, now: float) -> list[Record]:
    """Records of 20 jobs on 3 phones, some of an attempt that was given up, and some twice."""
    jobs = [make.job(block=block, candidates=("A", "B", "C", f"lane {block}")) for block in range(20)]
    ledger.submit("first-1", make.experiment(), jobs)
    records = []
    for place, job in enumerate(jobs):
        begun = ledger.begin_attempt(job.job_id, "ABC"[place % 3], "lab", 15.0)
        assert begun is not None
        attempts = [begun]
        if place % 4 == 0:  # it waits again, and mostly has a second attempt by now
            ledger.end_attempt(job.job_id, 1, Outcome.LOST, "host_stopping")
            again = ledger.begin_attempt(job.job_id, "A", "lab", 15.0) if place % 8 else None
            attempts += [again] if again else []
        for one in attempts:
            outcome, cause = dice.choice(ENDS)
            made = make.record(
                job, attempt=one.attempt, token=one.token, serial=one.serial, outcome=outcome, cause=cause,
                started_at=now, ended_at=now,
            )  # fmt: skip
            records += [made] * dice.choice((1, 1, 2))
    records.append(records[0])
    dice.shuffle(records)
    return records
