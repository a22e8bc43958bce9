"""A real Redis for each module; emptied for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from orchestrator.config import Settings
from orchestrator.coordination import client as redis_client
from tests.servers import RedisServer
from workers.spool import Spool


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path_factory.mktemp("redis"))
    try:
        started.start()
        yield started
    finally:
        started.close()


@pytest.fixture
def farm(server: RedisServer, tmp_path: object) -> Settings:
    """Settings of a farm on the test's Redis."""
    return Settings(state=tmp_path, redis_url=server.url, host="lab", lease_ttl_s=60.0)


@pytest.fixture
def redis(server: RedisServer, farm: Settings) -> Iterator[Redis]:
    server.mend()
    client = redis_client.connect(farm)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def spool(farm: Settings) -> Spool:
    return Spool(farm.state, "lab")
