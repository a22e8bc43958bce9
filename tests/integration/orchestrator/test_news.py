"""The scheduler turns as soon as there is something to decide, not when its time has come."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from orchestrator import acts
from orchestrator.coordination import keys
from orchestrator.coordination.news import News
from orchestrator.ledger import Ledger
from orchestrator.scheduling.scheduler import run
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make
from tests.waiting import eventually

from .hosts import Host, HostThread
from .sites import ME, site

TICK_S = 3600.0
"""A farm that waits for its tick once does not end within the test."""


@pytest.fixture
def slow_farm(farm: Settings) -> Settings:
    return farm.model_copy(update={"tick_s": TICK_S, "lease_ttl_s": 2 * TICK_S})


@pytest.fixture
def scheduler(slow_farm: Settings) -> Iterator[threading.Thread]:
    stop = threading.Event()
    thread = threading.Thread(target=run, args=(slow_farm, stop))
    yield thread
    stop.set()
    thread.join(30)
    assert not thread.is_alive(), "a scheduler that rests is ended at once"


def test_submissions_records_and_free_devices_begin_a_turn(
    slow_farm: Settings, redis: Redis, scheduler: threading.Thread, tmp_path: Path
) -> None:
    host = Host(slow_farm, redis, [make.device("A")])
    host.announce()
    scheduler.start()
    eventually(lambda: redis.exists(keys.WAITING), what="the first turn")
    at_work = HostThread(host)
    at_work.start()
    try:
        with Ledger(slow_farm.ledger) as ledger:
            found = acts.submit(site(slow_farm, ledger, redis), ME, make.many(4), tmp_path)
            counts = {"ok": len(found.expansion.jobs)}
            eventually(
                lambda: ledger.counts(found.experiment_id) == counts, what=lambda: ledger.counts(found.experiment_id)
            )
    finally:
        at_work.stop()


def test_what_was_heard_is_heard_once_and_a_spoilt_key_is_no_error(redis: Redis) -> None:
    news = News(redis)
    assert not news.wait(["lab"], 0.001)
    news.tell()
    news.tell()
    assert news.wait(["lab"], 1.0) and not news.wait(["lab"], 0.001)
    redis.set(keys.news("lab"), "spoilt")
    assert not news.wait(["lab"], 0.001)
