"""Records are kept many in a transaction: what goes wrong with one, or in the middle, loses and doubles none."""

from __future__ import annotations

import random
import sqlite3
import threading

import pytest
from redis import Redis
from sqlalchemy import Engine, event

from orchestrator.coordination import keys
from orchestrator.coordination.record_stream import RecordStream
from orchestrator.ledger import Ledger, Start
from orchestrator.model.errors import ServiceDown
from orchestrator.scheduling import intake as intake_module
from orchestrator.scheduling.intake import Intake
from orchestrator.scheduling.scheduler import Scheduler
from orchestrator.system.config import Settings
from tests.integration.orchestrator.sent import all_are_kept, measured, nothing_is_lost
from tests.unit.orchestrator import make
from workers.spool import Spool


def test_records_that_come_together_are_one_transaction(farm: Settings, redis: Redis, spool: Spool) -> None:
    commits: list[object] = []

    def note(connection: object) -> None:
        commits.append(connection)

    with Ledger(farm.ledger) as ledger:
        records = measured(ledger, spool, redis)
        event.listen(Engine, "commit", note)
        try:
            assert Intake(redis, ledger).drain() == {"new": 5}
        finally:
            event.remove(Engine, "commit", note)
        assert len(commits) == 1
        all_are_kept(ledger, spool, redis, records)


def test_one_of_many_that_cannot_be_stored_is_set_aside_alone(farm: Settings, redis: Redis) -> None:
    """It is found by halves: each transaction is a flush of the disk."""
    jobs = [make.job(block=block) for block in range(32)]
    stream = RecordStream(redis, "lab")
    commits: list[object] = []

    def note(connection: object) -> None:
        commits.append(connection)

    with Ledger(farm.ledger) as ledger:
        ledger.submit("first-1", make.many(32), jobs)
        tokens = {
            one.job_id: one.token for one in ledger.begin_attempts([Start(j.job_id, "A", "lab") for j in jobs], 15.0)
        }
        records = [make.record(job, attempt=1, token=tokens[job.job_id]) for job in jobs]
        bodies = [record.model_dump_json().encode() for record in records]
        bodies[20] = bodies[20].replace(b'"schema_version":1', b'"schema_version":2')
        names = [f"{job.job_id}:1" for job in jobs]
        stream.send_all(zip(bodies, names, strict=True))
        assert redis.ttl(keys.sent(stream.host, names[0])) > 3600, "it may wait for its ledger long"
        event.listen(Engine, "commit", note)
        try:
            assert Intake(redis, ledger).drain() == {"new": 31, "dead": 1}
        finally:
            event.remove(Engine, "commit", note)
        assert len(commits) <= 6, "31 records, and one that is set aside"
        assert stream.receipts(names) == {name: "dead" if name == names[20] else "new" for name in names}
        lives_s = {name: redis.ttl(keys.receipt(stream.host, name)) for name in names}
        assert lives_s.pop(names[20]) > 3600, "what a person then drops is not to come back"
        assert 60 < max(lives_s.values()) <= 600, "a day's jobs would fill Redis"
        assert not redis.exists(*(keys.sent(stream.host, name) for name in names))
        assert sorted(r.job_id for r in ledger.records("first-1")) == sorted(
            job.job_id for job in jobs if job != jobs[20]
        )
        (dead,) = ledger.dead.every()
        assert dead.name == names[20] and stream.waiting() == 0


def test_a_disk_that_fills_up_between_two_halves_loses_and_doubles_nothing(
    farm: Settings, redis: Redis, spool: Spool
) -> None:
    """The first half is kept and answered; the others have no receipt, and are kept when there is room."""
    with Ledger(farm.ledger) as ledger:
        records = measured(ledger, spool, redis)
    redis.flushall()
    stream, names = RecordStream(redis, "lab"), [f"{record.job_id}:1" for record in records]
    dice = random.Random(1)
    large = tuple(dice.randbytes(50).hex() for _ in range(5000))
    bodies = [record.model_dump_json().encode() for record in records]
    bodies[2] = records[2].model_copy(update={"reasons": large}).model_dump_json().encode()
    bodies[4] = bodies[4].replace(b'"schema_version":1', b'"schema_version":2')
    stream.send_all(zip(bodies, names, strict=True))

    def little_room(connection: sqlite3.Connection, _: object) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 20}")

    event.listen(Engine, "connect", little_room)
    try:
        with Ledger(farm.ledger) as ledger, pytest.raises(ServiceDown, match="full"):
            Intake(redis, ledger).drain()
    finally:
        event.remove(Engine, "connect", little_room)
    assert stream.receipts(names) == dict.fromkeys(names[:2], "new") and stream.waiting() == 3
    with Ledger(farm.ledger) as ledger:
        assert ledger.counts("first-1") == {"ok": 2, "placed": 3}
        assert Intake(redis, ledger).drain() == {"new": 2, "dead": 1}
        assert sorted(r.job_id for r in ledger.records("first-1")) == sorted(r.job_id for r in records[:4])
        assert len(ledger.dead.every()) == 1 and stream.waiting() == 0


@pytest.mark.parametrize(
    ("refuse", "accept"),
    [
        (("CONFIG", "SET", "min-replicas-to-write", "1"), ("CONFIG", "SET", "min-replicas-to-write", "0")),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
    ],
    ids=["no replicas", "is a replica"],
)
def test_records_whose_receipts_could_not_be_given_are_kept_once(
    farm: Settings, redis: Redis, spool: Spool, refuse: tuple[str, ...], accept: tuple[str, ...]
) -> None:
    """Redis takes no writes any more, after the commit."""
    with Ledger(farm.ledger) as ledger:
        records = measured(ledger, spool, redis)
        redis.execute_command(*refuse)
        try:
            with pytest.raises(ServiceDown):
                Intake(redis, ledger).drain()
        finally:
            redis.execute_command(*accept)
        nothing_is_lost(spool, redis, records)
        assert Intake(redis, ledger).drain() == {"duplicate": 5}
        all_are_kept(ledger, spool, redis, records)


def test_receipts_are_given_by_a_redis_without_memory(farm: Settings, redis: Redis, spool: Spool) -> None:
    with Ledger(farm.ledger) as ledger:
        records = measured(ledger, spool, redis)
        redis.config_set("maxmemory", 1)
        try:
            assert Intake(redis, ledger).drain() == {"new": 5}
        finally:
            redis.config_set("maxmemory", 0)
        all_are_kept(ledger, spool, redis, records)


def test_a_turn_that_leaves_records_is_followed_by_the_next_at_once(
    farm: Settings, redis: Redis, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_module, "PER_TURN", 3)
    monkeypatch.setattr(intake_module, "LEAST_OF_A_HOST", 1)
    pauses: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            return super().wait(0.0)

    with Ledger(farm.ledger) as ledger:
        measured(ledger, spool, redis)
        scheduler = Scheduler(farm.model_copy(update={"tick_s": 0.001}), ledger, redis)
        turn = scheduler.tick()
        assert turn.taken == {"new": 3} and turn.is_behind
        scheduler.rest(Stop(), 60.0, turn)
        assert pauses == []
        turn = scheduler.tick()
        assert turn.taken == {"new": 2} and not turn.is_behind
        scheduler.rest(Stop(), 60.0, turn)
        assert pauses[0] == 0.0, "a turn of few records that took long enough"
        pauses.clear()
        scheduler.rest(Stop(), 0.0005, turn)
        assert pauses[0] > 0.0, "what comes together is decided about together"
