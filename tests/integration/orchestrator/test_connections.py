"""Connections to a real Redis that are lent again and again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeout

from orchestrator.coordination.client import client_of
from orchestrator.coordination.connections import Connections
from orchestrator.system.config import Settings
from tests.servers import RedisServer
from tests.waiting import eventually


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis", persist=True) as started:
        yield started


@pytest.fixture
def redis(server: RedisServer) -> Iterator[Redis]:
    with client_of(Settings(redis_url=server.url)) as client:
        assert isinstance(client.connection_pool, Connections)
        yield client


def test_the_same_connection_serves_one_command_after_the_other(redis: Redis) -> None:
    assert len({redis.client_id() for _ in range(5)}) == 1
    with redis.pipeline() as pipe:
        pipe.client_id()
        assert pipe.execute() == [redis.client_id()]


def test_threads_do_not_share_one(redis: Redis) -> None:
    def counted(number: int) -> list[int]:
        return [redis.incr(f"of-{number}") for _ in range(200)]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(counted, range(8))) == [list(range(1, 201))] * 8
    assert len(redis.client_list()) <= 8


def test_one_that_was_closed_is_replaced_before_it_is_used(server: RedisServer, redis: Redis) -> None:
    redis.connection_pool.connection_kwargs["retry"] = None
    redis.set("x", 1)
    server.stop()
    server.start()
    connection = redis.connection_pool.get_connection()
    connection.send_command("GET", "x")
    assert connection.read_response() == "1"
    redis.connection_pool.release(connection)


def test_an_answer_that_nobody_read_is_not_the_next_one_s(redis: Redis) -> None:
    redis.set("x", 1)
    connection = redis.connection_pool.get_connection()
    connection.send_command("PING")
    assert connection.can_read(timeout=60.0)
    redis.connection_pool.release(connection)
    assert redis.get("x") == "1"


def test_an_answer_that_does_not_come_is_waited_for_in_vain(server: RedisServer, redis: Redis) -> None:
    with client_of(Settings(redis_url=server.url), reply_s=0.3) as hasty:
        hasty.connection_pool.connection_kwargs["retry"] = None
        assert hasty.set("x", 1)
        redis.client_pause(timeout=60_000)
        began = time.monotonic()
        with pytest.raises((RedisTimeout, RedisConnectionError)):
            hasty.set("x", 2)
        assert time.monotonic() - began < 30.0


def test_a_forked_process_has_connections_of_its_own(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    parents, forked = redis.client_id(), os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: forked)
    assert redis.client_id() != parents


def test_what_is_closed_leaves_no_connection(server: RedisServer, redis: Redis) -> None:
    with client_of(Settings(redis_url=server.url)) as other:
        other.ping()
        assert len(redis.client_list()) == 2
    eventually(lambda: len(redis.client_list()) == 1)  # Redis frees a closed one when it has answered the others
