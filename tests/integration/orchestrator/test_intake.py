"""No fault of the store costs a record: what is not in the ledger stays in the stream and in the spool."""

from __future__ import annotations

import json
import random
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import Connection, Engine, create_engine, event, text

from orchestrator.coordination import keys
from orchestrator.coordination.record_stream import RecordStream
from orchestrator.ledger import JobState, KeepResult, Ledger
from orchestrator.model.errors import Forged, ServiceDown, Unstorable
from orchestrator.model.record import DoubtCode, Outcome
from orchestrator.scheduling import intake as intake_module
from orchestrator.scheduling import set_aside
from orchestrator.scheduling.intake import Intake
from orchestrator.system.config import Settings
from tests.integration.orchestrator.sent import JOBS, all_are_kept, begun, measured, nothing_is_lost
from tests.unit.orchestrator import make
from workers.spool import Spool


def test_a_read_only_postgres_is_an_outage(postgres: str, redis: Redis, spool: Spool) -> None:
    """It refuses to write, as after a failover to a standby."""
    with Ledger(postgres) as ledger:
        records = measured(ledger, spool, redis)
        read_only(postgres, "on")
        with pytest.raises(ServiceDown, match="read-only"):
            Intake(redis, ledger).drain()
        nothing_is_lost(spool, redis, records)
        read_only(postgres, "off")
        all_are_kept(ledger, spool, redis, records)


@contextmanager
def autocommit(postgres: str) -> Iterator[Connection]:
    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def read_only(postgres: str, word: str) -> None:
    """Set it for every connection from now on; the present ones are ended."""
    with autocommit(postgres) as connection:
        connection.execute(text("SET default_transaction_read_only = off"))
        connection.execute(text(f"ALTER DATABASE postgres SET default_transaction_read_only = {word}"))
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres'"
        connection.execute(text(f"{others} AND pid <> pg_backend_pid()"))


def test_a_damaged_page_is_an_outage(farm: Settings, redis: Redis, spool: Spool) -> None:
    with Ledger(farm.ledger) as ledger:
        records = measured(ledger, spool, redis)
    file = Path(farm.ledger.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'records_by_kept_at'"
        (page,) = connection.execute(query).fetchone()
    sound, start = file.read_bytes(), (page - 1) * size
    file.write_bytes(sound[:start] + b"\xff" * size + sound[start + size :])
    with Ledger(farm.ledger) as ledger:
        with pytest.raises(ServiceDown, match="malformed"):
            Intake(redis, ledger).drain()
        nothing_is_lost(spool, redis, records)
    for beside in file.parent.glob(f"{file.name}-*"):
        beside.unlink()
    file.write_bytes(sound)
    with Ledger(farm.ledger) as ledger:
        all_are_kept(ledger, spool, redis, records)


def test_a_full_disk_is_an_outage(farm: Settings, redis: Redis, spool: Spool) -> None:
    with Ledger(farm.ledger) as ledger:
        records = [
            record.model_copy(update={"reasons": tuple(str(n) for n in range(20_000))})
            for record in measured(ledger, spool, redis)
        ]
    redis.flushall()
    for record in records:
        spool.add(record)
    spool.send(redis)

    def no_room(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # no page more than there are

    event.listen(Engine, "connect", no_room)
    try:
        with Ledger(farm.ledger) as ledger:
            with pytest.raises(ServiceDown, match="full"):
                Intake(redis, ledger).drain()
            nothing_is_lost(spool, redis, records)
    finally:
        event.remove(Engine, "connect", no_room)
    with Ledger(farm.ledger) as ledger:
        all_are_kept(ledger, spool, redis, records)


def test_a_record_that_fails_by_itself_waits_and_holds_back_no_other(
    farm: Settings, redis: Redis, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constraint says no, and nobody knows why: it is neither acknowledged nor set aside."""
    with Ledger(farm.ledger) as ledger:
        records = measured(ledger, spool, redis)
        refused = records[1].job_id
        with closing(sqlite3.connect(farm.ledger.removeprefix("sqlite:///"))) as connection:
            connection.execute(
                f"CREATE TRIGGER refuse BEFORE INSERT ON records WHEN NEW.job_id = '{refused}' "
                "BEGIN SELECT RAISE(ABORT, 'not this one'); END"
            )
            intake = Intake(redis, ledger)
            monkeypatch.setattr(intake_module, "BATCH", 2)  # one is committed while the next is prepared
            assert intake.drain() == {"new": 4, "held": 1}
            assert intake.drain() == {}, "not before its time"
            spool.send(redis)
            assert [path.stem for path in spool.waiting()] == [f"{refused}-1"] and redis.xlen(keys.records("lab")) == 1
            connection.execute("DROP TRIGGER refuse")
        monkeypatch.setattr(set_aside.time, "monotonic", lambda: float("inf"))
        assert intake.drain() == {"new": 1}
        monkeypatch.undo()
        all_are_kept(ledger, spool, redis, records)


REFUSE_AT_COMMIT = """
CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN
  RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = 'not this one';
END $$ LANGUAGE plpgsql;
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON records DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.job_id = '{}') EXECUTE FUNCTION refuse()
"""


def test_a_record_that_fails_at_the_commit_waits_and_holds_back_no_other(
    postgres: str, redis: Redis, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It seemed kept by then, and the next batch was prepared: no receipt was sent before the commit."""
    monkeypatch.setattr(intake_module, "BATCH", 2)
    with autocommit(postgres) as connection:
        connection.execute(text("CREATE DATABASE refusing"))
    url = postgres.replace("/postgres?", "/refusing?")
    with Ledger(url) as ledger:
        records = measured(ledger, spool, redis)
        refused, noted = records[1].job_id, list[str]()
        with autocommit(url) as connection:
            connection.execute(text(REFUSE_AT_COMMIT.format(refused)))
            intake = Intake(redis, ledger, lambda record: lambda: noted.append(record.job_id))
            assert intake.drain() == {"new": 4, "held": 1}
            assert noted == [record.job_id for record in records if record.job_id != refused]
            spool.send(redis)
            assert [path.stem for path in spool.waiting()] == [f"{refused}-1"]
            connection.execute(text("DROP TRIGGER refuse ON records"))
        all_are_kept(ledger, spool, redis, records)


def test_a_host_s_times_are_believed_where_they_can_be(farm: Settings, redis: Redis, spool: Spool, seed: int) -> None:
    """Drawn: clocks that are off and say so, and hosts that tell of 1970, of 2100, or of no time at all."""
    chance, inf = random.Random(seed), float("inf")
    jobs = [make.job(block=block) for block in range(40)]
    with Ledger(farm.ledger) as ledger:
        ledger.submit("first-1", make.many(40), jobs)
        began, lies = time.time(), dict[str, bool]()
        for job in jobs:
            off_s, is_lie = chance.choice([0.0, 30.0, -18_000.0, 1e9]), chance.random() < 0.5
            now = time.time() - off_s
            times = {"started_at": now, "ended_at": now, "clock_ahead_s": off_s}
            if is_lie:
                wrong = chance.choice([0.0, -1e300, 1e300, inf, -inf, float("nan"), now + 4e9, now - 4e9, now + 100.0])
                times[chance.choice([*times])] = wrong
            lies[job.job_id] = is_lie
            record = make.record(job, attempt=1, token=begun(ledger, job).token)
            said = json.dumps(record.model_dump(mode="json") | times | {"humidity": 0.4}).encode()
            RecordStream(redis, "lab").send(said, f"{job.job_id}:1")
        assert Intake(redis, ledger).drain() == {"new": 40}
        for record in ledger.records("first-1"):
            doubts = [each.detail for each in record.doubts if each.code is DoubtCode.HOST_CLOCK]
            started_at, ended_at = (at + (record.clock_ahead_s or 0.0) for at in (record.started_at, record.ended_at))
            assert began - 61.0 < started_at < ended_at + 61.0 < time.time() + 122.0
            assert lies[record.job_id] or not doubts, doubts
            assert not doubts or record.clock_ahead_s == 0.0
        assert sum(any(each.code is DoubtCode.HOST_CLOCK for each in r.doubts) for r in ledger.records("first-1")) > 5
        with closing(sqlite3.connect(farm.ledger.removeprefix("sqlite:///"))) as connection:
            (body,) = connection.execute("SELECT body FROM records").fetchone()
            assert json.loads(zlib.decompress(body))["humidity"] == 0.4


def test_a_newer_version_s_field_is_kept_and_ignored(farm: Settings, redis: Redis, spool: Spool) -> None:
    with Ledger(farm.ledger) as ledger:
        ledger.submit("first-1", make.many(1), JOBS[:1])
        token, now = begun(ledger, JOBS[0]).token, time.time()
        record = make.record(JOBS[0], attempt=1, token=token, started_at=now, ended_at=now)
        newer = record.model_dump(mode="json") | {"humidity": 0.4}
        newer["device"]["colour"] = "red"
        path = spool.add(record)
        spool.flush()
        path.write_text(json.dumps(newer))
        spool.send(redis)
        assert Intake(redis, ledger).drain() == {"new": 1}
        assert list(ledger.records("first-1")) == [record]
    with closing(sqlite3.connect(farm.ledger.removeprefix("sqlite:///"))) as connection:
        (body,) = connection.execute("SELECT body FROM records").fetchone()
    assert json.loads(zlib.decompress(body)) == newer


def test_a_record_of_another_version_is_set_aside_and_not_measured_again(
    farm: Settings, redis: Redis, spool: Spool
) -> None:
    with Ledger(farm.ledger) as ledger:
        ledger.submit("first-1", make.many(1), JOBS[:1])
        ledger.skip_tokens(2**40)
        record = make.record(JOBS[0], attempt=1, token=begun(ledger, JOBS[0]).token)
        other = record.model_dump(mode="json") | {"schema_version": 2}
        path = spool.add(record)
        spool.flush()
        path.write_text(json.dumps(other))
        spool.send(redis)
        assert Intake(redis, ledger).drain() == {"dead": 1}
        spool.send(redis)
        assert spool.waiting() == []
        file = farm.state / "spool" / "dead" / f"{record.job_id}-1.json"
        (dead,) = ledger.dead.every()
        assert ledger.dead.body(dead.id) == file.read_bytes() == json.dumps(other).encode()
        assert (dead.host, dead.name, dead.size) == ("lab", f"{record.job_id}:1", file.stat().st_size)
        assert "schema_version" in dead.reason
        assert ledger.counts("first-1") == {"failed": 1} and ledger.waiting() == []
        with pytest.raises(Unstorable):
            ledger.dead.replay(dead.id)
        assert ledger.dead.every() == [dead]


@pytest.mark.parametrize("readable", [True, False])
def test_a_record_of_another_host_s_attempt_is_refused_and_changes_nothing(
    farm: Settings, redis: Redis, spool: Spool, readable: bool
) -> None:
    """Host `evil` knows job, attempt and token of what `lab` was given, and is quicker."""
    with Ledger(farm.ledger) as ledger:
        ledger.submit("first-1", make.many(1), JOBS[:1])
        token, now = begun(ledger, JOBS[0]).token, time.time()
        record = make.record(JOBS[0], attempt=1, token=token, started_at=now, ended_at=now)
        forged = record.model_dump(mode="json") | {"ended_at": 0.5} | ({} if readable else {"schema_version": 2})
        RecordStream(redis, "evil").send(json.dumps(forged).encode(), f"{record.job_id}:1")
        assert Intake(redis, ledger).drain() == {"forged" if readable else "dead": 1}
        (dead,) = ledger.dead.every()
        assert dead.host == "evil" and (not readable or "which lab has" in dead.reason)
        assert ledger.counts("first-1") == {"placed": 1}, "its attempt goes on"
        if readable:
            with pytest.raises(Forged):
                ledger.dead.replay(dead.id)
        spool.add(record)
        spool.send(redis)
        assert Intake(redis, ledger).drain() == {"new": 1}
        assert list(ledger.records("first-1")) == [record]


def test_a_dead_record_that_can_be_read_after_all_is_replayed(farm: Settings) -> None:
    with Ledger(farm.ledger) as ledger:
        ledger.submit("first-1", make.many(1), JOBS[:1])
        record = make.record(JOBS[0], attempt=1, token=begun(ledger, JOBS[0]).token)
        dead_id = ledger.dead.set_aside(record.model_dump_json().encode(), "an earlier version could not read it")
        (job,) = ledger.jobs("first-1")
        assert (job.state, job.outcome, job.cause) == (JobState.DONE, Outcome.FAILED, "unstorable")
        assert ledger.dead.replay(dead_id) is KeepResult.NEW
        assert ledger.dead.every() == [] and ledger.counts("first-1") == {"ok": 1}
        assert list(ledger.records("first-1")) == [record]
