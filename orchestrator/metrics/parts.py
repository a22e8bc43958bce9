"""The parts of the farm that a scrape asks: Redis for what is now, the ledger for what was and what waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from redis import Redis

from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.coordination.record_stream import streams
from orchestrator.ledger.database import Database
from orchestrator.model.errors import FarmError
from orchestrator.model.live.waiting import WaitReason
from orchestrator.system.config import Settings

from .changes import Changes
from .devices import DeviceFamilies, host_families
from .nights import Nights
from .queue import queue_families
from .queueing import queueing_families
from .results import Results
from .sessions import lease_families, session_families

REPLY_S = 2.0
"""A Redis that hangs must not take the ledger's series with it: Prometheus gives a scrape ten seconds."""


class RedisPart:
    """Live state. A call raises ServiceDown where Redis is away, SetupError where none is configured."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._redis: Redis | None = None
        self._devices = DeviceFamilies()

    def inventory(self) -> Inventory:
        return Inventory(self._client())

    def reasons(self) -> dict[str, WaitReason] | None:
        """Return why jobs wait, as the scheduler says; None where it or Redis is away."""
        try:
            return self.inventory().waiting()
        except FarmError:
            return None

    def _client(self) -> Redis:
        if self._redis is None:
            self._redis = client_of(self._settings, reply_s=REPLY_S)
        return self._redis

    def __call__(self) -> list[Metric]:
        inventory = self.inventory()
        sessions = inventory.progress()
        return [
            *self._devices.of(inventory.devices(), sessions),
            *host_families(inventory.hosts()),
            *lease_families(Leases(self._client()).all().values()),
            *session_families(sessions),
            *_record_families(self._client()),
        ]


class LedgerPart:
    """Counts and results. A call raises ServiceDown where the database is away, SetupError where its URL is wrong.

    `reasons`: asked at each scrape why jobs wait.
    """

    def __init__(self, settings: Settings, reasons: Callable[[], dict[str, WaitReason] | None]) -> None:
        self._settings, self._reasons = settings, reasons
        self._database: Database | None = None
        self._results, self._nights, self._changes = Results(), Nights(), Changes()

    def __call__(self) -> list[Metric]:
        if self._database is None:
            self._database = Database(self._settings.ledger)
        wait_reasons = self._reasons()
        with self._database.read() as connection:
            self._results.update(connection)
            self._nights.update(connection)
            self._changes.follow(self._database, self._nights.newest)
            queue, queueing = queue_families(connection, wait_reasons), queueing_families(connection)
            nights = (self._nights.families(), self._changes.families())
            families = (queue, queueing, self._results.families(), *nights)
            return [each for part in families for each in part]


def _record_families(redis: Redis) -> Iterator[Metric]:
    """Records between a host's spool and the ledger."""
    waiting = sum(stream.waiting() for stream in streams(redis))
    yield GaugeMetricFamily("farm_stream_records", "Records in Redis on their way to the ledger.", value=waiting)
