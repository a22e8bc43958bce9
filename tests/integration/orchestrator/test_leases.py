"""Leases on a real Redis: exclusive, claimed once, fenced, restored after a wipe."""

from __future__ import annotations

import json
import threading
import time

import pytest
from redis import Redis

from orchestrator.coordination import keys
from orchestrator.coordination.leases import Leases
from orchestrator.model.errors import ServiceDown, Unreadable
from orchestrator.model.live.lease import Assignment
from tests.servers import RedisServer
from tests.unit.orchestrator import make


def assignment(
    token: int, *, ttl_s: float = 60.0, attempt: int = 1, serial: str = "A", host: str = "lab"
) -> Assignment:
    job = make.job()
    return Assignment(serial=serial, host=host, job_id=job.job_id, job=job, attempt=attempt, token=token, ttl_s=ttl_s)


@pytest.fixture
def leases(redis: Redis) -> Leases:
    return Leases(redis)


def test_from_acquire_to_release(leases: Leases) -> None:
    handed = assignment(7)
    assert leases.acquire(handed)
    (lease,) = leases.all().values()
    assert (lease.job_id, lease.attempt, lease.token, lease.holder) == (handed.job_id, 1, 7, "")
    assert 30 < lease.expires_at - leases.now() <= 60
    assert leases.claim("A", 7, "w1") == handed
    assert leases.claim("A", 7, "w1") is None
    assert leases.renew("A", 7, "w1", 600.0) == "held", "for as long as it was given"
    assert 30 < leases.all()["A"].expires_at - leases.now() <= 60
    assert leases.release("A", 7)
    assert not leases.release("A", 7)
    assert leases.all() == {} and leases.floor("A") == 7
    assert leases.renew("A", 7, "w1", 60.0) == "ended"


def test_an_assignment_of_another_version_gives_the_device_back(leases: Leases, redis: Redis) -> None:
    assert leases.acquire(assignment(7))
    redis.set(
        keys.assignment("lab", "A"), json.dumps(assignment(7).model_dump(mode="json") | {"of a newer version": 1})
    )
    with pytest.raises(Unreadable, match="token 7 cannot be read") as caught:
        leases.claim("A", 7, "w1")
    assert "update pocketfarm" in str(caught.value)
    assert leases.all() == {} and leases.floor("A") == 7


def test_a_live_lease_keeps_others_out(leases: Leases) -> None:
    assert leases.acquire(assignment(1))
    assert not leases.acquire(assignment(2))
    assert leases.release("A", 1)
    assert leases.acquire(assignment(2))


def test_an_older_token_never_replaces_a_newer_one(leases: Leases) -> None:
    assert leases.acquire(assignment(5))
    assert leases.claim("A", 4, "old") is None
    assert leases.renew("A", 4, "old", 5.0) == "superseded"
    assert not leases.release("A", 4) and not leases.reap("A", 4)
    assert not leases.restore(assignment(4), "old")
    leases.release("A", 5)
    assert not leases.acquire(assignment(5)) and not leases.acquire(assignment(4))
    assert not leases.restore(assignment(5), "w")


def test_a_device_that_moves_to_another_host_has_one_lease(leases: Leases) -> None:
    assert leases.acquire(assignment(1)) and leases.claim("A", 1, "w1") is not None
    assert not leases.acquire(assignment(2, host="other")), "the first host has it still"
    leases.release("A", 1)
    assert leases.acquire(assignment(3, host="other"))
    assert leases.renew("A", 1, "w1", 60.0) == "superseded" and not leases.release("A", 1)
    assert leases.claim("A", 3, "w2") == assignment(3, host="other")
    assert leases.holder("A") == "w2" and {lease.token for lease in leases.all().values()} == {3}
    assert not leases.acquire(assignment(4))


def test_expiry_is_by_redis_own_clock(leases: Leases) -> None:
    leases.acquire(assignment(1))
    assert leases.claim("A", 1, "w") is not None
    assert not leases.reap("A", 1) and leases.all()["A"].expires_at > leases.now()
    leases.renew("A", 1, "w", 0.01)
    time.sleep(0.05)
    assert leases.all()["A"].expires_at <= leases.now()
    assert leases.renew("A", 1, "w", 60.0) == "held"
    assert not leases.reap("A", 1)
    leases.renew("A", 1, "w", 0.01)
    time.sleep(0.05)
    assert leases.reap("A", 1)
    assert leases.renew("A", 1, "w", 5.0) == "ended" == leases.standing("A", 1, "w")


def test_an_expired_lease_cannot_be_claimed_but_replaced(leases: Leases) -> None:
    leases.acquire(assignment(1, ttl_s=0.01))
    time.sleep(0.05)
    assert leases.claim("A", 1, "late") is None
    assert leases.acquire(assignment(2))
    assert leases.renew("A", 1, "late", 5.0) == "superseded"


def test_a_claim_is_won_once_among_threads(leases: Leases, redis: Redis) -> None:
    for token in range(1, 21):
        assert leases.acquire(assignment(token))
        barrier, won = threading.Barrier(8), []

        def claim(me: int, token: int = token, barrier: threading.Barrier = barrier, won: list = won) -> None:
            mine = Leases(redis)
            barrier.wait()
            if mine.claim("A", token, f"w{me}"):
                won.append(me)

        threads = [threading.Thread(target=claim, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert leases.release("A", token)


def test_acquiring_is_won_by_one_thread_and_tokens_only_grow(leases: Leases) -> None:
    won: list[int] = []

    def acquire(token: int) -> None:
        if leases.acquire(assignment(token)):
            won.append(token)

    threads = [threading.Thread(target=acquire, args=(token,)) for token in range(1, 33)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and leases.all()["A"].token == won[0]


def test_a_wiped_redis_is_restored_but_not_what_was_released(leases: Leases, redis: Redis) -> None:
    leases.acquire(assignment(3))
    leases.claim("A", 3, "w1")
    redis.flushall()
    assert leases.all() == {} and leases.renew("A", 3, "w1", 5.0) == "missing"
    assert leases.restore(assignment(3), "w1")
    assert leases.renew("A", 3, "w1", 60.0) == "held"
    assert leases.renew("A", 3, "w2", 5.0) == "superseded"
    answers = [leases.standing("A", token, who) for token, who in ((3, "w1"), (3, "w2"), (2, "w1"), (4, "w1"))]
    assert answers == ["held", "superseded", "superseded", "missing"]
    assert leases.holder("A") == "w1" and leases.holder("B") == ""
    assert not leases.restore(assignment(3), "w1")


def test_script_cache_lost_with_redis_restart(server: RedisServer, leases: Leases, redis: Redis) -> None:
    leases.acquire(assignment(9))
    server.stop(kill=True)
    with pytest.raises(ServiceDown):
        leases.acquire(assignment(10))
    server.start()
    assert leases.claim("A", 9, "w") is not None
    assert redis.exists(keys.assignment("lab", "A"))
