"""Collect one scrape from all parts; a part that fails does not stop the others."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

log = logging.getLogger(__name__)

CACHE_S = 2.0
"""Scrapes within this time get the same answer: several Prometheus servers cost no more than one."""

Part = Callable[[], list[Metric]]
"""Reads one part of the farm (Redis, ledger). Raises where it is away."""


class FarmCollector(Collector):
    """The metrics of all parts, and which of them do not answer. Threads may scrape at once."""

    def __init__(self, parts: dict[str, Part], version: str) -> None:
        self._parts = parts
        self._version = version
        self._errors: Counter[str] = Counter(dict.fromkeys(parts, 0))
        self._away: set[str] = set()
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._families: list[Metric] = []

    def collect(self) -> Iterator[Metric]:
        """The families of a scrape. A part that is away has no series: its last values would be lies."""
        with self._lock:
            if time.monotonic() - self._read_at >= CACHE_S:
                self._families = list(self._read())
                self._read_at = time.monotonic()
            families = self._families
        yield from families

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask Redis and the ledger."""
        return []

    def _read(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("farm_up", "1 where a part of the farm answers the exporter.", labels=("part",))
        took = GaugeMetricFamily(
            "farm_scrape_duration_seconds", "How long the exporter took to read a part.", labels=("part",)
        )
        for name, read in self._parts.items():
            start = time.monotonic()
            families = self._ask(name, read)
            took.add_metric([name], time.monotonic() - start)
            up.add_metric([name], families is not None)
            yield from families or ()
        errors = CounterMetricFamily(
            "farm_scrape_errors", "Scrapes in which a part did not answer or answered nonsense.", labels=("part",)
        )
        for name, count in self._errors.items():
            errors.add_metric([name], count)
        yield from (up, took, errors, InfoMetricFamily("farm_build", "This farm.", value={"version": self._version}))

    def _ask(self, name: str, read: Part) -> list[Metric] | None:
        try:
            families = read()
        except Exception as e:  # whatever is wrong with one part, the others are still shown
            self._errors[name] += 1
            if name not in self._away:
                log.warning("%s does not answer: %s", name, e)
            self._away.add(name)
            return None
        self._away.discard(name)
        return families
