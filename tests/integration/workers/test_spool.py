"""Records survive the worker and Redis, and leave the disk only against a receipt."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from orchestrator.config import Settings
from orchestrator.coordination import keys
from orchestrator.coordination.client import client_of
from orchestrator.model.device import DeviceFacts, Source
from orchestrator.model.record import Outcome, Record
from tests.servers import RedisServer
from tests.waiting import eventually
from workers import spool as spool_module
from workers.spool import Spool


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "redis")
    server.start()
    yield server
    server.close()


@pytest.fixture
def redis(server: RedisServer, tmp_path: Path) -> Iterator[Redis]:
    with client_of(Settings(state=tmp_path, redis_url=server.url)) as client:
        yield client


def record(job_id: str = "job1", attempt: int = 1) -> Record:
    facts = DeviceFacts(serial="p", host="h", kind="phone", source=Source.PHONE)
    return Record(
        experiment_id="e",
        job_id=job_id,
        cell_id="c",
        block=0,
        attempt=attempt,
        token=7,
        worker="w",
        device=facts,
        source=Source.PHONE,
        outcome=Outcome.OK,
        started_at=1.0,
        ended_at=2.0,
    )


def sent(redis: Redis) -> list[Record]:
    return [Record.model_validate_json(fields["record"]) for _, fields in redis.xrange(keys.RECORDS)]


def test_kept_on_disk_until_the_receipt(tmp_path: Path, redis: Redis) -> None:
    spool = Spool(tmp_path)
    path = spool.add(record())
    spool.send(redis)
    spool.send(redis)
    assert sent(redis) == [record()], "sent once, not in every pass"
    assert path.exists()
    redis.set(keys.receipt("job1", 1), "1")
    spool.send(redis)
    assert spool.waiting() == []
    assert len(sent(redis)) == 1


def test_a_restarted_worker_sends_what_is_left(tmp_path: Path, redis: Redis) -> None:
    Spool(tmp_path).add(record())
    restarted = Spool(tmp_path)
    restarted.send(redis)
    assert sent(redis) == [record()]


def test_sent_again_without_a_receipt(tmp_path: Path, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "RESEND_S", 0.0)
    spool = Spool(tmp_path)
    spool.add(record())
    spool.send(redis)
    redis.delete(keys.RECORDS)  # a wiped Redis
    spool.send(redis)
    assert sent(redis) == [record()]


def test_redis_away_and_back(
    tmp_path: Path, server: RedisServer, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "workers.spool")
    spool, stop = Spool(tmp_path), threading.Event()
    server.stop(kill=True)
    sender = threading.Thread(target=spool.run, args=(redis, stop))
    sender.start()
    try:
        spool.add(record())
        eventually(lambda: "records wait in" in caplog.text)
        server.start()
        eventually(lambda: redis.xlen(keys.RECORDS))
        assert sent(redis) == [record()]
    finally:
        stop.set()
        sender.join(60)


def test_an_unreadable_file_does_not_stop_the_others(tmp_path: Path, redis: Redis) -> None:
    spool = Spool(tmp_path)
    bad = spool.add(record("bad"))
    bad.write_text('{"half a rec')
    spool.add(record("good"))
    spool.send(redis)
    assert [each.job_id for each in sent(redis)] == ["good"]
    assert bad.with_suffix(".unreadable").exists() and len(spool.waiting()) == 1
