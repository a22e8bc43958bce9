"""A farm in the test's own process: a real Redis, the real scheduler, a host that answers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from farm.cli import main
from orchestrator.coordination import client as redis_client
from orchestrator.scheduling import scheduler
from orchestrator.system.config import Settings
from tests.integration.orchestrator.hosts import Host, HostThread
from tests.servers import RedisServer
from tests.unit.orchestrator import make

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), persist=False) as started:
        yield started


@pytest.fixture
def settings(server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of the test's farm; commands find it by their environment."""
    found = Settings(state=tmp_path / "state", redis_url=server.url, host="lab", lease_ttl_s=60.0, tick_s=0.02)
    monkeypatch.setenv("FARM_STATE", str(found.state))
    monkeypatch.setenv("FARM_REDIS_URL", server.url)
    return found


@pytest.fixture
def redis(server: RedisServer, settings: Settings) -> Iterator[Redis]:
    server.mend()
    client = redis_client.connect(settings)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def host(settings: Settings, redis: Redis) -> Iterator[Host]:
    """A host with device A, announced and at work, and a scheduler; a test may change its `answer`."""
    found, stop = Host(settings, redis, [make.device("A")]), threading.Event()
    found.announce()
    worker, turns = HostThread(found), threading.Thread(target=scheduler.run, args=(settings, stop))
    worker.start()
    turns.start()
    try:
        yield found
    finally:
        stop.set()
        turns.join(60)
        worker.stop()


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process; exit status, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
