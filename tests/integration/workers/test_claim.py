"""A claim on a real Redis: what its session learns, and when it must stop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.model.errors import LeaseLost
from orchestrator.model.live.lease import Assignment
from tests.servers import RedisServer
from tests.unit.orchestrator import make
from tests.waiting import eventually
from workers import claim as claims
from workers.claim import Claim


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis", persist=False) as started:
        yield started


@pytest.fixture
def redis(server: RedisServer) -> Iterator[Redis]:
    with Redis.from_url(server.url, decode_responses=True) as client:
        yield client


def claimed(redis: Redis, *, token: int = 1, ttl_s: float = 60.0) -> Claim:
    job = make.job()
    made = Assignment(serial="A", host="lab", job_id=job.job_id, job=job, attempt=1, token=token, ttl_s=ttl_s)
    assert Leases(redis).acquire(made) and Leases(redis).claim("A", token, "lab-1-aa") == made
    return Claim(redis, made, "lab-1-aa")


def stops(claim: Claim, why: str) -> bool:
    try:
        claim.check()
    except LeaseLost as e:
        assert why in str(e)
        return True
    return False


def test_a_session_that_cannot_renew_stops_before_its_lease_is_another_s(server: RedisServer, redis: Redis) -> None:
    with claimed(redis, ttl_s=3.0) as claim:
        eventually(lambda: Leases(redis).all()["A"].expires_at - Leases(redis).now() > 2.5)
        begun = time.monotonic()
        claim.check()
        server.stop(kill=True)
        eventually(lambda: stops(claim, "could not be renewed for 2.4 s"))
        assert time.monotonic() - begun < 30.0
        server.start()
        assert stops(claim, "could not be renewed"), "it stays broken"


def test_a_session_that_was_held_up_asks_before_its_next_step(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LOOK_S", 60.0)
    held_up = claimed(redis)  # its thread does not run
    Leases(redis).release("A", 1)
    claimed(redis, token=2)
    assert not stops(held_up, ""), "its knowledge is fresh"
    monkeypatch.setattr(claims, "LOOK_S", 0.0)
    assert stops(held_up, "superseded")


def test_a_session_that_slept_longer_than_its_lease_stops(
    server: RedisServer, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suspended machine: its processes' own clock stood still meanwhile."""
    claim, awake = claimed(redis), claims.clock_s
    server.stop(kill=True)
    assert not stops(claim, "")
    monkeypatch.setattr(claims, "clock_s", lambda: awake() + 60.0)
    assert stops(claim, "could not be renewed for 48 s")


def test_the_clock_goes_on_while_the_machine_sleeps() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= claims.clock_s() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_a_session_learns_that_its_attempt_is_over(redis: Redis) -> None:
    with claimed(redis) as reaped:
        Leases(redis).release("A", 1)
        eventually(lambda: stops(reaped, "its lease is ended"))
    with claimed(redis, token=2) as ended:
        redis.sadd(keys.ENDED, 2)
        eventually(lambda: stops(ended, "the ledger has ended the attempt"))


def test_a_short_session_is_over_before_it_is_announced(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> bool:
        return bool(redis.exists(keys.live("lab", "A")))

    with claimed(redis) as claim:
        eventually(shown)
        claim.report("preparing")
    claim.release()
    assert not shown()
    monkeypatch.setattr(claims, "PHASE_S", 60.0)
    cleared: list[object] = []
    monkeypatch.setattr(Inventory, "clear_progress", lambda *_: cleared.append(_))
    with claimed(redis, token=2) as claim:
        claim.report("preparing")
        time.sleep(0.3)
        assert not shown()
    assert not cleared, "there is nothing to take away"


def test_a_session_that_a_wiped_redis_has_forgotten_goes_on(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "LOOK_S", 0.0)
    claim = claimed(redis)
    redis.flushall()
    assert not stops(claim, "")
