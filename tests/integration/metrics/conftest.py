"""One filled farm with exporter and Prometheus for all tests here."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from redis import Redis

from orchestrator.ledger import Ledger
from tests.conftest import SEED
from tests.servers import private_redis

from .content import Content, announce, fill, state_settings
from .servers import Prometheus, exporter, prometheus


@dataclass(frozen=True)
class Farm:
    content: Content
    exporter_url: str
    ledger: Ledger
    prometheus: Prometheus


@pytest.fixture(scope="package")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """A filled farm that a real Prometheus has scraped; its host goes on announcing itself."""
    folder = tmp_path_factory.mktemp("farm")
    with (
        private_redis(folder / "redis") as url,
        Redis.from_url(url, decode_responses=True) as redis,
        Ledger(f"sqlite:///{folder / 'ledger.sqlite'}") as ledger,
    ):
        content = fill(redis, ledger, seed=int(os.environ[SEED]))
        stop = threading.Event()
        host = threading.Thread(target=_announce_until, args=(stop, redis, content))
        host.start()
        try:
            with exporter(state_settings(folder, url)) as exporter_url, prometheus(folder, exporter_url) as server:
                server.wait_for("outcome_cause:farm_attempts:rate5m", 60)  # rates need more than one scrape
                server.wait_for("farm_night_changed_timestamp_seconds", 60)  # found outside of scrapes
                yield Farm(content, exporter_url, ledger, server)
        finally:
            stop.set()
            host.join()


def _announce_until(stop: threading.Event, redis: Redis, content: Content) -> None:
    while not stop.wait(2.0):
        announce(redis, content.devices, content.leased)
